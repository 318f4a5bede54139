//! Nobody gives others more than he has: what is asked when roles and bindings are written (upstream,
//! `registry/rbac/*/policybased` and `registry/rbac/validation`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    access::{self, Attributes},
    grants::RBAC,
};
use crate::{
    request::{Call, User},
    status::{GroupResource, Refusal},
    store::State,
};

/// Refuses a role or a binding that gives what its writer lacks, unless he may do that on purpose (`escalate`, `bind`).
pub(super) fn check(state: &State, call: &Call, object: &Value) -> Result<(), Refusal> {
    if call.resource.of.group != RBAC || access::is_admin(&call.caller.user) {
        return Ok(());
    }
    let (rules, may) = match call.resource.of.resource.as_str() {
        resource @ ("roles" | "clusterroles") => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            (object["rules"].clone(), may(state, call, "escalate", resource, name))
        }
        "rolebindings" | "clusterrolebindings" => {
            let reference = &object["roleRef"];
            let name = reference["name"].as_str().unwrap_or_default();
            let (resource, namespace) = match reference["kind"].as_str() {
                Some("ClusterRole") => ("clusterroles", String::new()),
                _ => ("roles", call.namespace.clone()),
            };
            let of = GroupResource::new(RBAC, resource);
            let may = may(state, call, "bind", resource, name);
            let Some(role) = state.get(&of, &(namespace, name.into())) else {
                // Upstream names the binding's resource, not the role's.
                return if may { Ok(()) } else { Err(Refusal::not_found(&call.resource.of, name)) };
            };
            (role["rules"].clone(), may)
        }
        _ => return Ok(()),
    };
    if may {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let all = json!([
        { "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] },
        { "verbs": ["*"], "nonResourceURLs": ["*"] },
    ]);
    if object["aggregationRule"].is_object() && !lacking(state, &call.caller.user, "", &all).is_empty() {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(Refusal::forbidden(&call.resource.of, name, why));
    }
    let lacking = lacking(state, &call.caller.user, &call.namespace, &rules);
    if lacking.is_empty() {
        return Ok(());
    }
    let why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        call.caller.user.name,
        quoted(call.caller.user.groups.iter().map(String::as_str)),
        lacking.join("\n")
    );
    Err(Refusal::forbidden(&call.resource.of, name, &why))
}

fn may(state: &State, call: &Call, verb: &str, resource: &str, name: &str) -> bool {
    let namespace = call.namespace.as_str();
    access::allowed(
        state,
        &call.caller.user,
        &Attributes { verb, group: RBAC, resource, subresource: "", namespace, name },
    )
}

/// The rules that a user lacks, as the real server writes them: one for each resource, with the verbs that it lacks.
fn lacking(state: &State, user: &User, namespace: &str, rules: &Value) -> Vec<String> {
    let mut of_resources: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
    let mut lacking = BTreeSet::new();
    for rule in rules.as_array().into_iter().flatten() {
        let list = |field: &str| texts(&rule[field]);
        for verb in list("verbs") {
            for path in list("nonResourceURLs").iter().filter(|path| !access::allows_path(state, user, &verb, path)) {
                lacking.insert(format!(
                    "{{NonResourceURLs:{}, Verbs:{}}}",
                    quoted([path.as_str()]),
                    quoted([verb.as_str()])
                ));
            }
            for (group, resource) in list("apiGroups")
                .iter()
                .flat_map(|group| list("resources").into_iter().map(|resource| (group.clone(), resource)))
            {
                let names = Some(list("resourceNames"))
                    .filter(|names| !names.is_empty())
                    .unwrap_or_else(|| vec![String::new()]);
                for name in names {
                    let (whole, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
                    let asked =
                        Attributes { verb: &verb, group: &group, resource: whole, subresource, namespace, name: &name };
                    if !access::allowed(state, user, &asked) {
                        of_resources.entry((group.clone(), resource.clone(), name)).or_default().push(verb.clone());
                    }
                }
            }
        }
    }
    lacking.extend(of_resources.into_iter().map(|((group, resource, name), verbs)| {
        let names =
            if name.is_empty() { String::new() } else { format!(", ResourceNames:{}", quoted([name.as_str()])) };
        let (group, resource) = (quoted([group.as_str()]), quoted([resource.as_str()]));
        format!(
            "{{APIGroups:{group}, Resources:{resource}{names}, Verbs:{}}}",
            quoted(verbs.iter().map(String::as_str))
        )
    }));
    lacking.into_iter().collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// As Go writes a list of texts.
fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<_> = texts.into_iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}
