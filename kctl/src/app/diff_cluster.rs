//! `generate-rbac --diff-cluster`: what the roles in a cluster lack, and what they have too much.

use std::collections::BTreeSet;

use http::Request;
use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};
use kctl_runtime::{
    manifest::{Grant, Manifest, Place, RbacOptions, grants_of_rule},
    reconcile::{Error, Result, ResultExt},
};
use kube::Client;
use serde_json::Value;

use super::cli::print;

/// Compares the generated objects with those in a cluster. Whatever is different is an error.
pub(super) async fn diff(
    client: &Client,
    declared: &[Grant],
    manifests: &[Manifest],
    options: &RbacOptions,
) -> Result<()> {
    let mut found = Vec::new();
    for Manifest { object: wanted, .. } in manifests {
        let text = |path: &str| wanted.pointer(path).and_then(Value::as_str);
        let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name").unwrap_or_default());
        let namespace = text("/metadata/namespace");
        let whole = namespace.map_or_else(|| format!("{kind} {name}"), |place| format!("{kind} {place}/{name}"));
        let Some(live) = read(client, kind, namespace, name).await.context(&whole)? else {
            found.push(format!("{whole} is missing"));
            continue;
        };
        match kind {
            "ClusterRole" | "Role" => {
                let place = namespace.map_or(Place::Everywhere, |namespace| Place::Namespace(namespace.into()));
                let grants = |role: &Value| {
                    let rules: Option<Vec<PolicyRule>> = serde_json::from_value(role["rules"].clone())?;
                    let rules = rules.unwrap_or_default();
                    Ok::<Vec<Grant>, Error>(rules.iter().flat_map(|rule| grants_of_rule(rule, &place)).collect())
                };
                found.extend(compare(&whole, &grants(wanted)?, &grants(&live)?, declared));
            }
            "ClusterRoleBinding" | "RoleBinding" => found.extend(compare_binding(&whole, wanted, &live)),
            _ => {}
        }
    }
    if found.is_empty() {
        return print("the cluster's roles are exactly what the declarations need\n");
    }
    print(&(found.join("\n") + "\n"))?;
    let RbacOptions { name, namespace, .. } = options;
    Err(Error::from(format!(
        "the cluster's roles are not what the declarations need\n\
         help: apply them with the same options: `… generate-rbac --name {name} --namespace {namespace} | kubectl apply -f -`"
    )))
}

async fn read(client: &Client, kind: &str, namespace: Option<&str>, name: &str) -> Result<Option<Value>> {
    let root = if kind == "ServiceAccount" { "/api/v1" } else { "/apis/rbac.authorization.k8s.io/v1" };
    let place = namespace.map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
    let path = format!("{root}{place}/{}s/{name}", kind.to_lowercase());
    match client.request::<Value>(Request::get(path).body(Vec::new())?).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a role lacks, with the declarations that need it, and what it has that no declaration needs.
fn compare(role: &str, wanted: &[Grant], given: &[Grant], declared: &[Grant]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for grant in wanted.iter().filter(|grant| !given.iter().any(|other| other.covers(grant))) {
        let declared = declared.iter().filter(|other| other.covers(grant));
        let because: BTreeSet<_> = declared.flat_map(|other| &other.because).map(|text| format!("`{text}`")).collect();
        let because = Vec::from_iter(because).join(" and ");
        let needed = if because.is_empty() { String::new() } else { format!(", which {because} needs") };
        found.insert(format!("{role} lacks {}{needed}", on_what(grant)));
    }
    for grant in given.iter().filter(|grant| !wanted.iter().any(|other| other.covers(grant))) {
        found.insert(format!("{role} has {} too much: no declaration needs it", on_what(grant)));
    }
    found
}

/// The place is said by the role.
fn on_what(grant: &Grant) -> String {
    format!("`{}`", Grant { place: Place::Everywhere, ..grant.clone() })
}

fn compare_binding(binding: &str, wanted: &Value, live: &Value) -> Option<String> {
    let subjects =
        |object: &Value| -> Vec<Subject> { serde_json::from_value(object["subjects"].clone()).unwrap_or_default() };
    let given = subjects(live);
    for Subject { kind, name, namespace, .. } in subjects(wanted) {
        let bound = |other: &Subject| other.kind == kind && other.name == name && other.namespace == namespace;
        if !given.iter().any(bound) {
            return Some(format!("{binding} does not bind the {kind} {}/{name}", namespace.unwrap_or_default()));
        }
    }
    let (own, other) = (&wanted["roleRef"]["name"], &live["roleRef"]["name"]);
    (own != other).then(|| format!("{binding} binds another role: {other} instead of {own}"))
}

#[cfg(test)]
mod tests {
    use kctl_runtime::manifest::On;
    use serde_json::json;

    use super::*;

    fn pods(verbs: &[&str], because: Option<&str>) -> Vec<Grant> {
        let grant = |verb: &&str| Grant {
            place: Place::Everywhere,
            on: On::Resource { group: String::new(), resource: "pods".into(), name: String::new() },
            verb: (*verb).into(),
            because: because.map(str::to_owned).into_iter().collect(),
            framework: false,
        };
        verbs.iter().map(grant).collect()
    }

    #[test]
    fn differences_of_roles_are_said_in_both_directions() {
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
        for (given, expected) in cases {
            let found = compare("role", &pods(&["create", "delete"], None), &pods(given, None), &declared);
            assert_eq!(Vec::from_iter(found), expected, "{given:?}");
        }
    }

    #[test]
    fn differences_of_bindings_are_said() {
        let binding = |role: &str, account: &str| {
            json!({
                "roleRef": { "name": role },
                "subjects": [
                    { "kind": "User", "name": "jane" },
                    { "kind": "ServiceAccount", "name": account, "namespace": "ops" },
                ],
            })
        };
        let wanted = json!({
            "roleRef": { "name": "app" },
            "subjects": [{ "kind": "ServiceAccount", "name": "app", "namespace": "ops" }],
        });
        let cases = [
            (binding("app", "app"), None),
            (binding("app", "bot"), Some("binding does not bind the ServiceAccount ops/app")),
            (binding("old", "app"), Some("binding binds another role: \"old\" instead of \"app\"")),
            (json!({ "roleRef": { "name": "app" } }), Some("binding does not bind the ServiceAccount ops/app")),
        ];
        for (live, expected) in cases {
            assert_eq!(compare_binding("binding", &wanted, &live).as_deref(), expected, "{live}");
        }
    }
}
