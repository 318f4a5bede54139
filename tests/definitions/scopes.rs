//! Scope of hand-written rules: a rule for a built-in kind goes into a Role if and only if the kind is namespaced.

use kctl::{Json, k8s::api::rbac::v1::PolicyRule, prelude::*, spec::ExtraRule};
use kctl_runtime::manifest::{PermissionScope, permissions};

/// The discovery document of a real API server.
const RESOURCES: &str = include_str!("../../kctl-apiserver/data/resources.json");

#[controller(namespaces = ["a"])]
async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    Ok(Action::await_change())
}

#[test]
fn rules_of_built_in_kinds_follow_their_scope() {
    let groups: Vec<Json> = serde_json::from_str(RESOURCES).unwrap();
    let mut compared = 0;
    for group in &groups {
        let name = group["groupVersion"].as_str().unwrap().rsplit_once('/').map_or("", |(group, _version)| group);
        for resource in group["resources"].as_array().unwrap() {
            let plural = resource["name"].as_str().unwrap();
            let rule = PolicyRule {
                api_groups: Some(vec![name.to_owned()]),
                resources: Some(vec![plural.to_owned()]),
                verbs: vec!["probe".into()],
                ..PolicyRule::default()
            };
            let mut spec = <idle as kctl::reconcile::Controller>::spec();
            spec.rbac = vec![ExtraRule::new("rbac", rule)];
            let all = permissions(&[spec], "");
            let found = all.iter().find(|permission| permission.verb == "probe").unwrap();
            let expected = if resource["namespaced"] == true {
                PermissionScope::Namespace("a".into())
            } else {
                PermissionScope::Everywhere
            };
            assert_eq!(found.scope, expected, "{plural} of {name:?}");
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
}
