//! Aggregated `ClusterRoles` (`pkg/controller/clusterroleaggregation`).
//!
//! `admin`, `edit` and `view` are such roles: they have the rules of all roles with a label such as
//! `rbac.authorization.k8s.io/aggregate-to-view: "true"`. A CRD's author adds a role with the label to extend them.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    apply::{self, Request, Resets},
    kinds::rbac::cluster_role,
    lifecycle,
    registry::kind::Subresource,
    selector,
    store::{Key, Store},
};

/// The field manager that applies the rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Returns the rules of the roles that an aggregation rule selects: by selector, then by name, each rule once. `None`
/// for a role without an aggregation rule. A role never includes itself. Rules are compared as a whole, so overlapping
/// ones are kept.
fn aggregate_rules<'a>(role: &Value, roles: &(impl Iterator<Item = &'a Value> + Clone)) -> Option<Vec<Value>> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array()?;
    let (mut rules, mut seen) = (Vec::new(), HashSet::new());
    for selector in selectors {
        let selected = roles.clone().filter(|other| {
            other["metadata"]["name"] != role["metadata"]["name"]
                && selector::selects(selector, &other["metadata"]["labels"])
        });
        for rule in selected.flat_map(|other| other["rules"].as_array().into_iter().flatten()) {
            if seen.insert(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

/// Updates all aggregated roles. The rules are applied with force, so that this controller owns them: a user who wrote
/// them loses the field. Roles that aggregate aggregated roles take another pass, because each write queues all roles
/// again. Each role sees the new rules of the roles before it, so two roles that aggregate each other agree. A role
/// whose rules are up to date is not written. A failure is logged, and the role keeps its rules.
pub(super) fn aggregate(store: &mut Store) {
    let group_resource = cluster_role::KIND.group_resource();
    let Some(resource) = store.registry.any_version(&group_resource) else { return };
    let mut roles: Vec<Arc<Value>> = store.objects(&group_resource, None).collect();
    let now = store.clock.seconds();
    for index in 0..roles.len() {
        let role = roles[index].clone();
        let Some(rules) = aggregate_rules(&role, &roles.iter().map(AsRef::as_ref)) else { continue };
        if role["rules"].as_array().map_or(rules.is_empty(), |current| *current == rules) {
            continue;
        }
        let api_version = resource.api_version();
        let request = Request {
            schema: resource.schema(),
            manager: MANAGER,
            subresource: Subresource::Main,
            api_version: &api_version,
            versions: &resource.kind.storage,
            now: &now,
            has_status: false,
            resets: Resets::NOTHING,
            force: true,
        };
        let name = &role["metadata"]["name"];
        let mut applied =
            json!({ "kind": cluster_role::KIND.kind, "apiVersion": api_version, "metadata": { "name": name } });
        if !rules.is_empty() {
            applied["rules"] = rules.into();
        }
        match apply::apply(&request, Some(&role), &applied) {
            Ok(mut new) => {
                if new["rules"].is_null() {
                    // Go writes an empty list as null.
                    new["rules"] = Value::Null;
                }
                let key: Key = (String::new(), name.as_str().unwrap_or_default().into());
                roles[index] = lifecycle::update(store, &group_resource, &key, &role, new);
            }
            Err(error) => tracing::error!(%error, %name, "failed to aggregate a role; its rules are unchanged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::status::GroupResource;

    fn role(name: &str, labels: &Value, resources: &[&str]) -> Value {
        let rules: Vec<Value> =
            resources.iter().map(|resource| json!({ "verbs": ["get"], "resources": [resource] })).collect();
        json!({ "metadata": { "name": name, "labels": labels }, "rules": rules })
    }

    #[test]
    fn rules_come_once_by_selector_and_by_name() {
        let mut whole = role("agg", &json!({ "agg": "yes" }), &["secrets"]);
        whole["aggregationRule"] = json!({ "clusterRoleSelectors": [
            { "matchLabels": { "agg": "yes" } },
            { "matchExpressions": [{ "key": "other", "operator": "Exists" }] },
        ] });
        let parts = [
            role("a", &json!({ "agg": "yes", "other": "yes" }), &["pods", "configmaps"]),
            whole.clone(),
            role("b", &json!({ "agg": "yes" }), &["pods", "ys"]),
            role("c", &json!({}), &["nodes"]),
        ];
        let names =
            |rules: Vec<Value>| -> Vec<Value> { rules.iter().map(|rule| rule["resources"][0].clone()).collect() };
        // Expects the rules that kube-controller-manager computes.
        let rules = aggregate_rules(&whole, &parts.iter()).map(names);
        assert_eq!(rules, Some(vec!["pods".into(), "configmaps".into(), "ys".into()]));
        assert_eq!(aggregate_rules(&parts[0], &parts.iter()), None);
    }

    #[test]
    fn aggregated_rules_follow_their_parts() {
        let resource = GroupResource::new("rbac.authorization.k8s.io", "clusterroles");
        let key = |name: &str| (String::new(), name.to_owned());
        let mut state = Store::new(crate::kinds::built_in(), Clock::System, 0);
        let whole = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "whole" },
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "agg": "yes" } }] }, "rules": null,
        });
        state.put(&resource, key("whole"), whole);
        let rules = |state: &mut Store| {
            aggregate(state);
            state.get(&resource, &key("whole")).unwrap().get("rules").cloned()
        };
        assert_eq!(rules(&mut state), Some(Value::Null));
        let part = role("part", &json!({ "agg": "yes" }), &["pods"]);
        state.put(&resource, key("part"), part.clone());
        assert_eq!(rules(&mut state), Some(part["rules"].clone()));
        state.remove(&resource, &key("part"));
        assert_eq!(rules(&mut state), Some(Value::Null));
    }

    /// Writes both roles forever if each of them gets the old rules of the other.
    #[test]
    fn roles_that_aggregate_each_other_agree() {
        let resource = GroupResource::new("rbac.authorization.k8s.io", "clusterroles");
        let mut state = Store::new(crate::kinds::built_in(), Clock::System, 0);
        for (name, resources) in [("a", &[][..]), ("b", &["pods"])] {
            let mut role = role(name, &json!({ "agg": "yes" }), resources);
            role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
            role["kind"] = "ClusterRole".into();
            role["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "agg": "yes" } }] });
            state.put(&resource, (String::new(), name.to_owned()), role);
        }
        aggregate(&mut state);
        let revision = state.revision;
        aggregate(&mut state);
        assert_eq!(state.revision, revision);
        let all: Vec<_> = state.objects(&resource, None).map(|role| role["rules"][0]["resources"].clone()).collect();
        assert_eq!(all, [json!(["pods"]), json!(["pods"])]);
    }
}
