//! The controller `aggregation`: collects the statuses of works into the binding and into the template.
//!
//! The interpreter operation `AggregateStatus` defines how the statuses of a kind are merged.

use kctl::{
    karmada::{
        kind::Gvk,
        operation::{AggregateStatus, AggregatedStatusItem, Aggregation},
    },
    kube::api::{Patch, PatchParams},
    object::Stored,
    prelude::*,
};
use serde_json::{Map, Value, json};

use crate::{
    APP,
    found::{Finds, FoundKinds},
    interpret::Rules,
    kinds::{MemberCluster, ResourceBinding, ResourceBindingStatus, StatusItem, Work},
    members::{all, is_ready},
    templates::{binding_of, patching_status, reading},
    works::work_name,
};

/// Collects the statuses of the works of a binding.
#[controller(
    of = ResourceBinding,
    watches = Work(map = binding_of_work),
    watches = MemberCluster(map = all::<ResourceBinding>),
    rbac(reading(), patching_status()),
    primary(when = generation_changed),
    name = "aggregation"
)]
pub(crate) struct Collector {
    /// Templates on the control plane.
    templates: FoundKinds,
    /// The interpreters.
    rules: Rules,
}

impl Finds for Collector {
    fn with(templates: FoundKinds, rules: Rules) -> Self {
        Self { templates, rules }
    }

    /// Maps a changed template to its binding, so that the statuses of the works are aggregated again.
    fn key_of(kind: &Gvk, template: &Stored) -> Option<Key<ResourceBinding>> {
        binding_of(kind, template)
    }
}

impl Reconcile for Collector {
    /// Writes the statuses of all works into the binding, and the aggregated status into the template.
    async fn reconcile(&self, binding: Arc<ResourceBinding>, cx: Context<Self>) -> Result<Action> {
        let namespace = binding.namespace().unwrap_or_default();
        let mut aggregated = Vec::new();
        for cluster in &binding.spec.clusters {
            let key = Key::namespaced(&namespace, &work_name(&binding.name_any(), &cluster.name));
            let Some(work) = cx.store::<Work>().get(&key) else { continue };
            let reported = work.status.clone().unwrap_or_default();
            // As in Karmada, the health of an object that is not applied is unknown.
            let is_known = reported.applied && is_ready(&cx, &cluster.name);
            aggregated.push(StatusItem {
                cluster_name: cluster.name.clone(),
                status: reported.status.filter(|_| reported.applied),
                applied: reported.applied,
                applied_message: reported.applied_message,
                health: if is_known { reported.health } else { "Unknown".into() },
            });
        }
        let items: Vec<AggregatedStatusItem> = serde_json::from_value(serde_json::to_value(&aggregated)?)?;
        cx.patch_status(ResourceBindingStatus { aggregated_status: aggregated }).await?;
        let resource = &binding.spec.resource;
        if let Some(template) = self.templates.get(&resource.gvk(), &namespace, &resource.name).await? {
            self.update_template(&cx, &template, items).await?;
        }
        Ok(Action::await_change())
    }
}

impl Collector {
    /// Writes the aggregated status into the template.
    ///
    /// The patch contains the uid, so that it can't change a template that was deleted and created again. No request is
    /// sent if the kind has no aggregation rule, or if the status is unchanged.
    async fn update_template(
        &self,
        cx: &Context<Self>,
        template: &Value,
        items: Vec<AggregatedStatusItem>,
    ) -> Result<()> {
        let aggregation = Aggregation { object: template.clone(), items };
        let Some(updated) = self.rules.interpret::<AggregateStatus>(aggregation).await? else { return Ok(()) };
        let Some(change) = change(&status_of(template), &status_of(&updated)) else { return Ok(()) };
        let metadata = &template["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let Some(api) = self.templates.api(cx.client(), &Gvk::from_object(template), text("namespace")).await? else {
            return Ok(());
        };
        let patch = Patch::Merge(json!({ "metadata": { "uid": metadata["uid"] }, "status": change }));
        api.patch_status(
            text("name"),
            &PatchParams { field_manager: Some(APP.into()), ..PatchParams::default() },
            &patch,
        )
        .await?;
        Ok(())
    }
}

/// Returns the status of an object; empty if it has none.
fn status_of(object: &Value) -> Value {
    object.get("status").filter(|status| status.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// Returns the merge patch from one status to another: changed fields, and null for removed fields, at every depth.
/// Returns `None` if the statuses are equal.
///
/// A missing field equals 0, because Go omits zeros and a patch for them would repeat forever.
fn change(old: &Value, new: &Value) -> Option<Value> {
    let is_empty = |value: &Value| value.is_null() || value == 0;
    if old == new || (is_empty(old) && is_empty(new)) {
        return None;
    }
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else { return Some(new.clone()) };
    let changed = after.iter().filter_map(|(name, value)| {
        let change = change(before.get(name).unwrap_or(&Value::Null), value)?;
        Some((name.clone(), change))
    });
    let removed = before.iter().filter(|(name, value)| !after.contains_key(*name) && !is_empty(value));
    let change: Map<_, _> = changed.chain(removed.map(|(name, _)| (name.clone(), Value::Null))).collect();
    (!change.is_empty()).then_some(Value::Object(change))
}

/// Returns the binding that controls a work.
fn binding_of_work(work: &Work, _bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    let owners = work.owner_references().iter().filter(|owner| owner.controller == Some(true));
    owners.map(|owner| Key::namespaced(&work.namespace().unwrap_or_default(), &owner.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies a merge patch (RFC 7396).
    fn merge(object: &mut Value, patch: &Value) {
        let Some(fields) = patch.as_object() else {
            *object = patch.clone();
            return;
        };
        if !object.is_object() {
            *object = json!({});
        }
        for (name, value) in fields {
            if value.is_null() {
                object.as_object_mut().unwrap().remove(name);
            } else {
                merge(&mut object[name], value);
            }
        }
    }

    #[test]
    fn patch_leads_to_the_new_status() {
        let address = |ip: &str| json!({ "loadBalancer": { "ingress": [{ "ip": ip }] }, "kept": 1 });
        let cases = [
            (address("10.0.0.1"), json!({ "loadBalancer": {}, "kept": 1 })),
            (address("10.0.0.1"), address("10.0.0.2")),
            (address("10.0.0.1"), json!({})),
            (json!({}), address("10.0.0.1")),
            (json!({ "a": { "b": { "c": 1, "d": 2 } } }), json!({ "a": { "b": { "c": 3 } } })),
            (json!({ "a": 1 }), json!({ "a": { "b": 1 } })),
        ];
        for (old, new) in cases {
            let patch = change(&old, &new).unwrap();
            let mut patched = old.clone();
            merge(&mut patched, &patch);
            assert_eq!(patched, new, "from {old} by {patch}");
            assert_eq!(change(&patched, &new), None);
        }
    }

    #[test]
    fn zero_and_missing_fields_are_equal() {
        assert_eq!(change(&json!({}), &json!({ "ready": 0 })), None);
        assert_eq!(change(&json!({ "a": { "ready": 0 } }), &json!({ "a": {} })), None);
        assert_eq!(change(&json!({ "ready": 1 }), &json!({ "ready": 0 })), Some(json!({ "ready": 0 })));
    }
}
