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
    registry::{Resource, kind::Subresource},
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

/// Updates all aggregated roles by name. Each role sees the rules that this pass has written.
///
/// Every write starts again with the first role, so that roles that aggregate each other in a circle agree in the end:
/// with a fixed order, three roles can pass different rules around forever. Upstream has no order (its workers take
/// turns at random), so its circles agree by chance. A pass ends after as many writes as there are roles; its writes
/// queue the next pass. This bounds the time under the lock.
pub(super) fn aggregate(store: &mut Store) {
    let group_resource = cluster_role::KIND.group_resource();
    let Some(resource) = store.registry.any_version(&group_resource) else { return };
    let mut roles: Vec<Arc<Value>> = store.objects(&group_resource, None).collect();
    let (mut index, mut writes_left) = (0, roles.len());
    while index < roles.len() && writes_left > 0 {
        if let Some(new) = update_role(store, &resource, &roles[index], &roles) {
            roles[index] = new;
            index = 0;
            writes_left -= 1;
        } else {
            index += 1;
        }
    }
}

/// Updates the rules of an aggregated role, and returns the written role. The rules are applied with force, so that
/// this controller owns them: a user who wrote them loses the field. Returns `None` for a role without an aggregation
/// rule, and for a role whose rules are up to date: it is not written. A failure is logged, and the role keeps its
/// rules.
fn update_role(store: &mut Store, resource: &Resource, role: &Arc<Value>, roles: &[Arc<Value>]) -> Option<Arc<Value>> {
    let rules = aggregate_rules(role, &roles.iter().map(AsRef::as_ref))?;
    if role["rules"].as_array().map_or(rules.is_empty(), |current| *current == rules) {
        return None;
    }
    let (now, api_version) = (store.clock.seconds(), resource.api_version());
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
    let mut new = apply::apply(&request, Some(role), &applied)
        .inspect_err(|error| tracing::error!(%error, %name, "failed to aggregate a role; its rules are unchanged"))
        .ok()?;
    if new["rules"].is_null() {
        // Go writes an empty list as null.
        new["rules"] = Value::Null;
    }
    let key: Key = (String::new(), name.as_str().unwrap_or_default().into());
    let written = lifecycle::update(store, &resource.id, &key, role, new);
    // `lifecycle::update` returns the old object if nothing has changed. Such a role must not start the pass again.
    (!Arc::ptr_eq(&written, role)).then_some(written)
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

    /// Aggregates `ClusterRoles` twice. Each has a label value, the value that it selects, and resources. Fails if the second
    /// pass changes a role. Returns the resources of the first rules.
    fn aggregate_twice(roles: &[(&str, &str, &str, &[&str])]) -> Vec<Value> {
        let resource = GroupResource::new("rbac.authorization.k8s.io", "clusterroles");
        let mut state = Store::new(crate::kinds::built_in(), Clock::System, 0);
        for (name, label, selected, resources) in roles {
            let mut role = role(name, &json!({ "agg": label }), resources);
            role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
            role["kind"] = "ClusterRole".into();
            role["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "agg": selected } }] });
            state.put(&resource, (String::new(), (*name).to_owned()), role);
        }
        aggregate(&mut state);
        let revision = state.revision;
        aggregate(&mut state);
        assert_eq!(state.revision, revision);
        state.objects(&resource, None).map(|role| role["rules"][0]["resources"].clone()).collect()
    }

    /// Writes both roles forever if each of them gets the old rules of the other.
    #[test]
    fn roles_that_aggregate_each_other_agree() {
        let all = aggregate_twice(&[("a", "yes", "yes", &[]), ("b", "yes", "yes", &["pods"])]);
        assert_eq!(all, [json!(["pods"]), json!(["pods"])]);
    }

    /// Writes the roles forever if each pass updates them in the same order.
    #[test]
    fn three_roles_in_a_circle_agree() {
        let all = aggregate_twice(&[("a", "a", "b", &[]), ("b", "b", "c", &[]), ("c", "c", "a", &["pods"])]);
        assert_eq!(all, [json!(["pods"]), json!(["pods"]), json!(["pods"])]);
    }
}
