//! `generate-rbac --diff-cluster`: what the roles in a cluster lack, and what they have too much.

use std::collections::BTreeMap;

use http::Request;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role, Subject};
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
    wanted: &[Grant],
    manifests: &[Manifest],
    options: &RbacOptions,
) -> Result<()> {
    let mut found = Vec::new();
    for Manifest { object, .. } in manifests {
        let (kind, place) = (object["kind"].as_str().unwrap_or_default(), object["metadata"]["namespace"].as_str());
        let whole =
            place.map_or_else(|| format!("{kind} {}", options.name), |p| format!("{kind} {p}/{}", options.name));
        let Some(live) = read(client, kind, place, &options.name).await.context(&whole)? else {
            found.push(format!("{whole} is missing"));
            continue;
        };
        let here = place.map_or(Place::Everywhere, |namespace| Place::Namespace(namespace.into()));
        let of_role = |rules: Option<Vec<PolicyRule>>| {
            let wanted: Vec<&Grant> = wanted.iter().filter(|grant| grant.place == here).collect();
            compare(&whole, &wanted, &rules.unwrap_or_default(), &here)
        };
        match kind {
            "ClusterRole" => found.extend(of_role(serde_json::from_value::<ClusterRole>(live)?.rules)),
            "Role" => found.extend(of_role(serde_json::from_value::<Role>(live)?.rules)),
            "ClusterRoleBinding" | "RoleBinding" => found.extend(compare_binding(&whole, &live, options)?),
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
fn compare(role: &str, wanted: &[&Grant], rules: &[PolicyRule], place: &Place) -> Vec<String> {
    let given: Vec<Grant> = rules.iter().flat_map(|rule| grants_of_rule(rule, place)).collect();
    let mut found = BTreeMap::new();
    for grant in wanted.iter().filter(|grant| !given.iter().any(|other| other.covers(grant))) {
        let because: Vec<_> = grant.because.iter().map(|text| format!("`{text}`")).collect();
        found.insert((0, *grant), format!("{role} lacks {}, which {} needs", on_what(grant), because.join(" and ")));
    }
    for grant in given.iter().filter(|grant| !wanted.iter().any(|other| other.covers(grant))) {
        found.insert((1, grant), format!("{role} has {} too much: no declaration needs it", on_what(grant)));
    }
    found.into_values().collect()
}

/// The place is said by the role.
fn on_what(grant: &Grant) -> String {
    format!("`{}`", Grant { place: Place::Everywhere, ..grant.clone() })
}

fn compare_binding(binding: &str, live: &Value, options: &RbacOptions) -> Result<Option<String>> {
    let subjects: Vec<Subject> = serde_json::from_value(live["subjects"].clone()).unwrap_or_default();
    let RbacOptions { name, namespace, .. } = options;
    let ours = |subject: &Subject| {
        subject.kind == "ServiceAccount" && subject.name == *name && subject.namespace.as_ref() == Some(namespace)
    };
    if !subjects.iter().any(ours) {
        return Ok(Some(format!("{binding} does not bind the service account {namespace}/{name}")));
    }
    let role = &live["roleRef"]["name"];
    Ok((role != name).then(|| format!("{binding} binds another role: {role}")))
}

#[cfg(test)]
mod tests {
    use kctl_runtime::manifest::On;

    use super::*;

    fn rule(resource: &str, verbs: &[&str]) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec![resource.into()]),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn differences_are_said_in_both_directions() {
        let wanted = |verb: &str| Grant {
            place: Place::Everywhere,
            on: On::Resource { group: String::new(), resource: "pods".into(), name: String::new() },
            verb: verb.into(),
            because: ["set: owns = Pod".to_owned()].into(),
            framework: false,
        };
        let lacks = "role lacks `delete pods`, which `set: owns = Pod` needs";
        let cases: [(&[&str], &[&str]); 5] = [
            (&["create", "delete"], &[]),
            (&["create"], &[lacks]),
            (&["create", "delete", "get"], &["role has `get pods` too much: no declaration needs it"]),
            (&["create", "get"], &[lacks, "role has `get pods` too much: no declaration needs it"]),
            (&["*"], &["role has `* pods` too much: no declaration needs it"]),
        ];
        for (verbs, expected) in cases {
            let found =
                compare("role", &[&wanted("create"), &wanted("delete")], &[rule("pods", verbs)], &Place::Everywhere);
            assert_eq!(found, expected, "{verbs:?}");
        }
    }
}
