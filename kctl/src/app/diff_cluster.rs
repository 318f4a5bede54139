//! `generate-rbac --diff-cluster`: the permissions that the roles in a cluster lack, and those that
//! they have in excess.

use std::collections::BTreeSet;

use http::Request;
use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};
use kctl_apimachinery::url::escape;
use kctl_runtime::{
    manifest::{Manifest, Permission, PermissionScope, RbacOptions, permissions_of_rule},
    reconcile::{Error, Result, ResultExt},
};
use kube::Client;
use serde_json::Value;

use super::stdout::print;

/// Compares the generated objects with those in a cluster, and prints the differences.
///
/// # Errors
/// There is a difference, or the cluster does not answer.
pub(super) async fn diff(
    client: &Client,
    declared: &[Permission],
    manifests: &[Manifest],
    options: &RbacOptions,
) -> Result<()> {
    let mut found = Vec::new();
    let mut expected = Vec::new();
    for Manifest { object: desired, .. } in manifests {
        let text = |path: &str| desired.pointer(path).and_then(Value::as_str);
        let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name").unwrap_or_default());
        let namespace = text("/metadata/namespace");
        let whole =
            namespace.map_or_else(|| format!("{kind} {name}"), |namespace| format!("{kind} {namespace}/{name}"));
        let Some(live) = read(client, kind, namespace, name).await.context(&whole)? else {
            found.push(format!("{whole} is missing"));
            continue;
        };
        match kind {
            "ClusterRole" | "Role" => {
                let scope = namespace
                    .map_or(PermissionScope::Everywhere, |namespace| PermissionScope::Namespace(namespace.into()));
                let desired = permissions_of_role(desired, &scope)?;
                found.extend(compare(&whole, &desired, &permissions_of_role(&live, &scope)?, declared));
                expected.extend(desired);
            }
            "ClusterRoleBinding" | "RoleBinding" => found.extend(compare_binding(&whole, desired, &live)),
            _ => {}
        }
    }
    found.extend(extra_permissions(client, manifests, &expected, options).await?);
    if found.is_empty() {
        return print("the cluster's roles are exactly what the declarations need\n");
    }
    print(&(found.join("\n") + "\n"))?;
    let RbacOptions { name, namespace, .. } = options;
    Err(Error::from(format!(
        "the cluster's roles are not what the declarations need\n\
         help: apply them with the same options: `… generate-rbac --name {name} --namespace {namespace} | kubectl apply -f -`; delete \
         bindings that are too much"
    )))
}

fn permissions_of_role(role: &Value, scope: &PermissionScope) -> Result<Vec<Permission>> {
    let rules: Option<Vec<PolicyRule>> = serde_json::from_value(role["rules"].clone())?;
    Ok(rules.iter().flatten().flat_map(|rule| permissions_of_rule(rule, scope)).collect())
}

/// Returns the permissions that other bindings grant the service account and no generated role
/// grants, for example from earlier options.
///
/// Permissions of groups of accounts are not the app's, and are left out.
async fn extra_permissions(
    client: &Client,
    manifests: &[Manifest],
    expected: &[Permission],
    options: &RbacOptions,
) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for binding in list(client, kind).await.context(format!("{kind}s of the cluster"))? {
            let text = |path: &str| binding.pointer(path).and_then(Value::as_str);
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name").unwrap_or_default());
            let is_desired_binding = |desired: &Value| {
                desired["kind"] == kind
                    && desired["metadata"]["name"] == binding["metadata"]["name"]
                    && desired["metadata"]["namespace"] == binding["metadata"]["namespace"]
            };
            if !binds(&binding, options) || manifests.iter().any(|manifest| is_desired_binding(&manifest.object)) {
                continue;
            }
            let whole =
                namespace.map_or_else(|| format!("{kind} {name}"), |namespace| format!("{kind} {namespace}/{name}"));
            let (role_kind, role) =
                (text("/roleRef/kind").unwrap_or_default(), text("/roleRef/name").unwrap_or_default());
            let role_place = namespace.filter(|_| role_kind == "Role");
            // A binding whose role does not exist grants nothing.
            let Some(live) = read(client, role_kind, role_place, role).await.context(&whole)? else { continue };
            let scope =
                namespace.map_or(PermissionScope::Everywhere, |namespace| PermissionScope::Namespace(namespace.into()));
            let granted = permissions_of_role(&live, &scope)?;
            let too_much = granted.iter().filter(|permission| !expected.iter().any(|other| other.covers(permission)));
            let line = |permission| {
                let target = format_permission(permission);
                format!("{whole} gives {target} too much, by the {role_kind} {role}: no declaration needs it")
            };
            found.extend(too_much.map(line));
        }
    }
    Ok(found)
}

/// Returns `true` if a binding names the service account, directly or as a user.
fn binds(binding: &Value, options: &RbacOptions) -> bool {
    let RbacOptions { name, namespace, .. } = options;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    subjects(binding).iter().any(|subject| match subject.kind.as_str() {
        "ServiceAccount" => subject.name == *name && subject.namespace.as_ref() == Some(namespace),
        "User" => subject.name == user,
        _ => false,
    })
}

/// Number of objects per list request.
const PAGE_LEN: u32 = 500;

/// Lists all objects of an RBAC kind, in all namespaces.
async fn list(client: &Client, kind: &str) -> Result<Vec<Value>> {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{}s", kind.to_lowercase());
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        // API servers encode the continue token in characters that need no escapes in a URL.
        let page = format!("{path}?limit={PAGE_LEN}&continue={next}");
        let page: Value = client.request(Request::get(page).body(Vec::new())?).await?;
        objects.extend(page["items"].as_array().into_iter().flatten().cloned());
        next = page["metadata"]["continue"].as_str().unwrap_or_default().into();
        if next.is_empty() {
            return Ok(objects);
        }
    }
}

/// Reads a `ServiceAccount` or RBAC object; `None` if it does not exist.
async fn read(client: &Client, kind: &str, namespace: Option<&str>, name: &str) -> Result<Option<Value>> {
    let root = if kind == "ServiceAccount" { "/api/v1" } else { "/apis/rbac.authorization.k8s.io/v1" };
    let parent = namespace.map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
    // API servers accept names of RBAC objects with spaces and other characters that a URL can't have.
    let path = format!("{root}{parent}/{}s/{}", kind.to_lowercase(), escape(name));
    match client.request::<Value>(Request::get(path).body(Vec::new())?).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns what a role lacks, with the declarations that need it, and what it has that no
/// declaration needs.
fn compare(role: &str, desired: &[Permission], granted: &[Permission], declared: &[Permission]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for permission in desired.iter().filter(|permission| !granted.iter().any(|other| other.covers(permission))) {
        let declared = declared.iter().filter(|other| other.covers(permission));
        let because: BTreeSet<_> = declared.flat_map(|other| &other.because).map(|text| format!("`{text}`")).collect();
        let because = Vec::from_iter(because).join(" and ");
        let needed = if because.is_empty() { String::new() } else { format!(", which {because} needs") };
        found.insert(format!("{role} lacks {}{needed}", format_permission(permission)));
    }
    for permission in granted.iter().filter(|permission| !desired.iter().any(|other| other.covers(permission))) {
        found.insert(format!("{role} has {} too much: no declaration needs it", format_permission(permission)));
    }
    found
}

/// Formats a permission without its namespace, which the line already names.
fn format_permission(permission: &Permission) -> String {
    format!("`{}`", Permission { scope: PermissionScope::Everywhere, ..permission.clone() })
}

/// Returns how a binding differs from the generated one, if it does.
fn compare_binding(binding: &str, desired: &Value, live: &Value) -> Option<String> {
    let live_subjects = subjects(live);
    for Subject { kind, name, namespace, .. } in subjects(desired) {
        let bound = |other: &Subject| other.kind == kind && other.name == name && other.namespace == namespace;
        if !live_subjects.iter().any(bound) {
            return Some(format!("{binding} does not bind the {kind} {}/{name}", namespace.unwrap_or_default()));
        }
    }
    let role = |object: &Value| {
        let text = |field: &str| object["roleRef"][field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("kind"), text("name"))
    };
    let (own, other) = (role(desired), role(live));
    (own != other).then(|| format!("{binding} binds another role: the {other} instead of the {own}"))
}

fn subjects(binding: &Value) -> Vec<Subject> {
    serde_json::from_value(binding["subjects"].clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kctl_runtime::manifest::PermissionTarget;
    use serde_json::json;

    use super::*;

    fn pods(verbs: &[&str], because: Option<&str>) -> Vec<Permission> {
        let permission = |verb: &&str| Permission {
            scope: PermissionScope::Everywhere,
            target: PermissionTarget::Resource { group: String::new(), resource: "pods".into(), name: String::new() },
            verb: (*verb).into(),
            because: because.map(str::to_owned).into_iter().collect(),
            framework: false,
        };
        verbs.iter().map(permission).collect()
    }

    #[test]
    fn missing_and_excess_permissions_are_listed() {
        const LACKS: &str = "role lacks `delete pods`, which `set: owns = Pod` needs";
        const TOO_MUCH: &str = "role has `get pods` too much: no declaration needs it";
        let cases: [(&[&str], &[&str]); 5] = [
            (&["create", "delete"], &[]),
            (&["create"], &[LACKS]),
            (&["create", "delete", "get"], &[TOO_MUCH]),
            (&["create", "get"], &[TOO_MUCH, LACKS]),
            (&["*"], &["role has `* pods` too much: no declaration needs it"]),
        ];
        let declared = pods(&["create", "delete"], Some("set: owns = Pod"));
        for (granted, expected) in cases {
            let found = compare("role", &pods(&["create", "delete"], None), &pods(granted, None), &declared);
            assert_eq!(Vec::from_iter(found), expected, "{granted:?}");
        }
    }

    #[test]
    fn differences_of_bindings_are_listed() {
        let binding = |kind: &str, role: &str, account: &str| {
            json!({
                "roleRef": { "kind": kind, "name": role },
                "subjects": [
                    { "kind": "User", "name": "jane" },
                    { "kind": "ServiceAccount", "name": account, "namespace": "ops" },
                ],
            })
        };
        let desired = json!({
            "roleRef": { "kind": "Role", "name": "app" },
            "subjects": [{ "kind": "ServiceAccount", "name": "app", "namespace": "ops" }],
        });
        let cases = [
            (binding("Role", "app", "app"), None),
            (binding("Role", "app", "bot"), Some("binding does not bind the ServiceAccount ops/app")),
            (binding("Role", "old", "app"), Some("binding binds another role: the Role old instead of the Role app")),
            (
                binding("ClusterRole", "app", "app"),
                Some("binding binds another role: the ClusterRole app instead of the Role app"),
            ),
            (json!({ "roleRef": { "name": "app" } }), Some("binding does not bind the ServiceAccount ops/app")),
        ];
        for (live, expected) in cases {
            assert_eq!(compare_binding("binding", &desired, &live).as_deref(), expected, "{live}");
        }
    }

    #[tokio::test]
    async fn role_name_with_a_space_is_escaped() {
        let server = tower::service_fn(|request: Request<kube::client::Body>| async move {
            let role = json!({ "metadata": { "name": request.uri().path() } });
            let body = kube::client::Body::from(role.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        });
        let role = read(&Client::new(server, "default"), "ClusterRole", None, "my role").await.unwrap().unwrap();
        assert_eq!(role["metadata"]["name"], "/apis/rbac.authorization.k8s.io/v1/clusterroles/my%20role");
    }

    /// Tests manifests of an app that lists pods in `default`, on a server that has further bindings.
    #[cfg(feature = "testing")]
    #[tokio::test]
    async fn permissions_of_other_bindings_are_in_excess() {
        use super::super::files::{FromFile, apply};
        let options = RbacOptions::new("app", "default");
        let here = PermissionScope::Namespace("default".into());
        let declared: Vec<Permission> = pods(&["list"], None)
            .into_iter()
            .map(|permission| Permission { scope: here.clone(), ..permission })
            .collect();
        let manifests = kctl_runtime::manifest::rbac_of(&declared, &options).unwrap();
        let before = kctl_runtime::manifest::rbac_of(&pods(&["list", "delete"], None), &options).unwrap();
        let other = |kind: &str, subject: &Value| {
            let mut binding = before[2].object.clone();
            binding["kind"] = json!(kind);
            binding["metadata"] = json!({ "name": "other", "namespace": "default" });
            binding["subjects"] = json!([subject]);
            binding
        };
        let group =
            json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts" });
        let user = json!({
            "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:serviceaccount:default:app",
        });
        let too_much = |binding: &str, what: &str| {
            format!("{binding} gives `{what}` too much, by the ClusterRole app: no declaration needs it")
        };
        let whole =
            vec![too_much("ClusterRoleBinding app", "delete pods"), too_much("ClusterRoleBinding app", "list pods")];
        let local = vec![too_much("RoleBinding default/other", "delete pods")];
        let cases: [(Vec<Value>, Vec<String>); 4] = [
            (Vec::new(), Vec::new()),
            (vec![before[2].object.clone()], whole),
            (vec![other("RoleBinding", &group)], Vec::new()),
            // Permissions that the app's own role gives as well are not in excess.
            (vec![other("RoleBinding", &user)], local),
        ];
        for (more, expected) in cases {
            let server = kctl_apiserver::ApiServer::new();
            let client = Client::new(server.service(), "default");
            let all = manifests.iter().chain(&before[1..2]).map(|manifest| manifest.object.clone()).chain(more.clone());
            let all: Vec<_> = all.map(|object| FromFile { object, origin: "test".into() }).collect();
            apply(&client, &all).await.unwrap();
            let found = extra_permissions(&client, &manifests, &declared, &options).await.unwrap();
            assert_eq!(Vec::from_iter(found), expected, "{more:?}");
            let result = diff(&client, &declared, &manifests, &options).await;
            assert_eq!(result.is_err(), !expected.is_empty(), "{result:?}");
        }
    }
}
