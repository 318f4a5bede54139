//! What members say → the status of the binding, and of the template itself.

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
    templates::{binding_of, reading, telling},
    works::work_name,
};

/// Collects what became of the works of a binding.
#[controller(
    of = ResourceBinding,
    watches = Work(map = binding_of_work),
    watches = MemberCluster(map = all::<ResourceBinding>),
    rbac(reading(), telling()),
    primary(when = generation_changed),
    name = "aggregation"
)]
pub(crate) struct Collector {
    templates: FoundKinds,
    rules: Rules,
}

impl Finds for Collector {
    fn with(templates: FoundKinds, rules: Rules) -> Self {
        Self { templates, rules }
    }

    fn key_of(kind: &Gvk, template: &Stored) -> Option<Key<ResourceBinding>> {
        binding_of(kind, template)
    }
}

impl Reconcile for Collector {
    async fn reconcile(&self, binding: Arc<ResourceBinding>, cx: Context<Self>) -> Result<Action> {
        let namespace = binding.namespace().unwrap_or_default();
        let mut aggregated = Vec::new();
        for cluster in &binding.spec.clusters {
            let key = Key::namespaced(&namespace, &work_name(&binding.name_any(), &cluster.name));
            let Some(work) = cx.store::<Work>().get(&key) else { continue };
            let said = work.status.clone().unwrap_or_default();
            // Of what is not there as it should be nobody knows how it is, as in Karmada.
            let is_known = said.applied && is_ready(&cx, &cluster.name);
            aggregated.push(StatusItem {
                cluster_name: cluster.name.clone(),
                status: said.status.filter(|_| said.applied),
                applied: said.applied,
                applied_message: said.applied_message,
                health: if is_known { said.health } else { "Unknown".into() },
            });
        }
        let items: Vec<AggregatedStatusItem> = serde_json::from_value(serde_json::to_value(&aggregated)?)?;
        cx.patch_status(ResourceBindingStatus { aggregated_status: aggregated }).await?;
        let resource = &binding.spec.resource;
        if let Some(template) = self.templates.get(&resource.gvk(), &namespace, &resource.name).await? {
            self.tell(&cx, &template, items).await?;
        }
        Ok(Action::await_change())
    }
}

impl Collector {
    /// Gives the template the status that its members have together.
    async fn tell(&self, cx: &Context<Self>, template: &Value, items: Vec<AggregatedStatusItem>) -> Result<()> {
        let aggregation = Aggregation { object: template.clone(), items };
        let Some(told) = self.rules.ask::<AggregateStatus>(aggregation).await? else { return Ok(()) };
        let Some(change) = change(&template["status"], &told["status"]) else { return Ok(()) };
        let metadata = &template["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let Some(api) = self.templates.api(cx.client(), &Gvk::of(template), text("namespace")).await? else {
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

/// What of a status is to be sent: fields that are new or others, and null for those that are gone.
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

fn binding_of_work(work: &Work, _bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    let owners = work.owner_references().iter().filter(|owner| owner.controller == Some(true));
    owners.map(|owner| Key::namespaced(&work.namespace().unwrap_or_default(), &owner.name)).collect()
}
