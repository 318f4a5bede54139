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
        let Some(change) = change(&template["status"], &updated["status"]) else { return Ok(()) };
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

/// Returns the merge patch from one status to another: changed fields, and null for removed fields. Returns `None` if
/// the statuses are equal.
///
/// A missing field equals 0, because Go omits zeros and a patch for them would repeat forever.
fn change(old: &Value, new: &Value) -> Option<Value> {
    let none = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let is_empty = |value: &Value| value.is_null() || value == 0;
    let mut change = Map::new();
    for (name, value) in new.iter().filter(|(name, value)| {
        let before = old.get(*name).unwrap_or(&Value::Null);
        before != *value && !(is_empty(before) && is_empty(value))
    }) {
        change.insert(name.clone(), value.clone());
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        change.insert(name.clone(), Value::Null);
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

/// Returns the binding that controls a work.
fn binding_of_work(work: &Work, _bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    let owners = work.owner_references().iter().filter(|owner| owner.controller == Some(true));
    owners.map(|owner| Key::namespaced(&work.namespace().unwrap_or_default(), &owner.name)).collect()
}
