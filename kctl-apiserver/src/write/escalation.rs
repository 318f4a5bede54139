//! Privilege escalation check: a user can grant only rights that the user has. Upstream:
//! `pkg/registry/rbac/*/policybased` and `pkg/registry/rbac/validation`.
//!
//! Without it, a user with the right to create roles could grant any right to any user, including itself. The check
//! compares sets of rights, not rules: the writer may hold them through any number of bindings.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    authorizer::{self, Attributes, RBAC},
    kinds::rbac::{cluster_role, role},
    metadata,
    registry::kind::Grants,
    request::{RequestInfo, User},
    state::State,
    status::{GroupResource, StatusError},
};

/// Maximum number of permissions that are checked for one write: pairs of a verb and a path, and combinations of a
/// verb, a resource and a name. They are checked one by one under the lock of the server, and a few lists of 1,000
/// strings would have a trillion combinations.
const PERMISSIONS_LEN_MAX: usize = 100_000;

/// Rejects a role or a binding that grants more than its writer has, unless the writer may `escalate` or `bind` it.
/// `old` is the stored object. The writer of a role needs all of its rules, the writer of a binding all rules of the
/// referenced role. The group `system:masters` is exempt. The error lists the missing rights.
pub(super) fn check(state: &State, info: &RequestInfo, old: Option<&Value>, object: &Value) -> Result<(), StatusError> {
    let resource = &info.resource;
    let Some(grants) = resource.kind.validation.grants else { return Ok(()) };
    if authorizer::is_admin(&info.caller.user) {
        return Ok(());
    }
    if old.is_some_and(|old| metadata::only_mutates_gc_fields(old, object)) {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (rules, is_exempt) = match grants {
        Grants::Rules => (object["rules"].clone(), is_allowed(state, info, "escalate", &resource.id.resource, name)),
        Grants::ReferencedRole => {
            let reference = &object["roleRef"];
            let name = reference["name"].as_str().unwrap_or_default();
            let is_of_cluster = reference["kind"] == cluster_role::KIND.kind;
            let (kind, namespace) =
                if is_of_cluster { (&cluster_role::KIND, "") } else { (&role::KIND, info.namespace.as_str()) };
            let is_exempt = is_allowed(state, info, "bind", kind.resource, name);
            let Some(role) = state.store.object(kind, namespace, name) else {
                // Upstream names the resource of the binding here, not of the role.
                return if is_exempt { Ok(()) } else { Err(StatusError::not_found(&resource.id, name)) };
            };
            (role["rules"].clone(), is_exempt)
        }
    };
    if is_exempt {
        return Ok(());
    }
    if n_permissions(&rules) > PERMISSIONS_LEN_MAX {
        let why = format!("more than {PERMISSIONS_LEN_MAX} permissions cannot be checked: split the role");
        return Err(StatusError::forbidden(&info.resource.id, name, &why));
    }
    let missing = missing_permissions(state, &info.caller.user, &info.namespace, &rules);
    if missing.is_empty() {
        return require_aggregation_rights(state, info, old, object);
    }
    let missing: Vec<&str> = missing.iter().map(|permission| permission.trim_end()).collect();
    let why = format!("user {:?} must hold what it grants, and lacks: {}", info.caller.user.name, missing.join(", "));
    Err(StatusError::forbidden(&info.resource.id, name, &why))
}

/// Rejects a role with an aggregation rule, before or after the write, unless its writer has all permissions. Otherwise
/// a writer could change the rule so that others can no longer reduce the aggregated rights. All permissions means all
/// verbs on all resources and on all paths, cluster-wide.
fn require_aggregation_rights(
    state: &State,
    info: &RequestInfo,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), StatusError> {
    let is_aggregated = |role: &Value| role["aggregationRule"].is_object();
    let all = json!([
        { "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] },
        { "verbs": ["*"], "nonResourceURLs": ["*"] },
    ]);
    let has_aggregation = is_aggregated(object) || old.is_some_and(is_aggregated);
    if has_aggregation && !missing_permissions(state, &info.caller.user, "", &all).is_empty() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(StatusError::forbidden(&info.resource.id, name, why));
    }
    Ok(())
}

/// Returns `true` if RBAC grants the caller a verb on RBAC objects.
fn is_allowed(state: &State, info: &RequestInfo, verb: &str, resource: &str, name: &str) -> bool {
    let namespace = info.namespace.as_str();
    authorizer::is_allowed(
        state,
        &info.caller.user,
        &Attributes { verb, group: RBAC, resource, subresource: "", namespace, name },
    )
}

/// Returns the permissions of rules that a user lacks, as `verb resource` or `verb path`. Sorted and without
/// duplicates. Resource names are checked one by one; without names the right to all objects is needed.
fn missing_permissions(state: &State, user: &User, namespace: &str, rules: &Value) -> BTreeSet<String> {
    let mut lacking = BTreeSet::new();
    for rule in rules.as_array().into_iter().flatten() {
        for verb in strings(rule, "verbs") {
            let paths =
                strings(rule, "nonResourceURLs").filter(|path| !authorizer::allows_path(state, user, verb, path));
            lacking.extend(paths.map(|path| format!("{verb} {path}")));
        }
        let names: Vec<&str> = strings(rule, "resourceNames").collect();
        for (group, resource, verb) in triples(rule) {
            for name in if names.is_empty() { &[""] } else { &*names } {
                let (whole, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let attributes = Attributes { verb, group, resource: whole, subresource, namespace, name };
                if !authorizer::is_allowed(state, user, &attributes) {
                    lacking.insert(format!("{verb} {} {name}", GroupResource::new(group, resource)));
                }
            }
        }
    }
    lacking
}

/// Returns the number of permissions that [`missing_permissions`] checks.
fn n_permissions(rules: &Value) -> usize {
    let of_rule = |rule: &Value| {
        let n = |field: &str| strings(rule, field).count();
        let lists = [n("apiGroups"), n("resources"), n("verbs"), n("resourceNames").max(1)];
        let n_paths = n("verbs").saturating_mul(n("nonResourceURLs"));
        lists.into_iter().fold(1, usize::saturating_mul).saturating_add(n_paths)
    };
    rules.as_array().into_iter().flatten().map(of_rule).fold(0, usize::saturating_add)
}

/// Returns the group, resource and verb of all combinations in a rule, in this order.
fn triples(rule: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    strings(rule, "apiGroups").flat_map(move |group| {
        strings(rule, "resources")
            .flat_map(move |resource| strings(rule, "verbs").map(move |verb| (group, resource, verb)))
    })
}

/// Returns the strings of a list field.
fn strings<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::ApiServer;

    /// Never ends if each combination is checked.
    #[tokio::test]
    async fn role_with_too_many_permissions_is_forbidden() {
        let server = ApiServer::new();
        let rule = json!({ "verbs": ["create"], "apiGroups": [RBAC], "resources": ["clusterroles"] });
        let role = json!({ "metadata": { "name": "maker" }, "rules": [rule] });
        let binding = json!({
            "metadata": { "name": "maker" },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "maker" },
            "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": "jane" }],
        });
        for (kind, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            server.succeed("POST", &format!("/apis/{RBAC}/v1/{kind}"), &object).await;
        }
        for (n, code) in [(1_000, 403), (1, 201)] {
            let many = vec!["create"; n];
            let rule = json!({ "verbs": many, "apiGroups": vec![RBAC; n], "resources": vec!["clusterroles"; n] });
            let role = json!({ "metadata": { "name": "many" }, "rules": [rule] }).to_string();
            let request = Request::post(format!("/apis/{RBAC}/v1/clusterroles"));
            let request = request.header("content-type", "application/json");
            let response = server.service_as(User::new("jane")).send_request(request, role).await;
            assert_eq!(response.status(), code, "{n}: {}", response.body());
        }
    }
}
