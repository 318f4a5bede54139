//! What members say → the status of the binding, and of the template itself.

use kctl::{
    interpreter::operation::{AggregateStatus, AggregatedStatusItem, Aggregation},
    object::Object,
    prelude::*,
    reconcile::{MayPatchStatus, Writes},
};
use serde_json::{Map, Value};

use crate::{
    interpret::ask,
    kinds::{MemberCluster, ResourceBinding, ResourceBindingStatus, StatusItem, Work},
    members::is_ready,
    templates::{self, binding_name},
    works::work_name,
};

/// Collects what became of the works of a binding.
#[controller(
    watches = Work(map = binding_of_work),
    watches = MemberCluster(map = all_bindings),
    watches = Deployment(status, map = binding_of),
    watches = Service(status, map = binding_of),
    watches = Pod(status, map = binding_of),
    reads = ConfigMap,
    reads = Secret,
    primary(when = generation_changed),
    name = "aggregation"
)]
pub(crate) async fn aggregation(binding: Arc<ResourceBinding>, cx: Context<aggregation>) -> Result<Action> {
    let namespace = binding.namespace().unwrap_or_default();
    let mut aggregated = Vec::new();
    for cluster in &binding.spec.clusters {
        let key = Key::namespaced(&namespace, &work_name(&binding.name_any(), &cluster.name));
        let Some(work) = cx.store::<Work>().get(&key) else { continue };
        let said = work.status.clone().unwrap_or_default();
        let health = if is_ready(&cx, &cluster.name) { said.health } else { "Unknown".into() };
        aggregated.push(StatusItem {
            cluster_name: cluster.name.clone(),
            status: said.status,
            applied: said.applied,
            applied_message: said.applied_message,
            health,
        });
    }
    let items: Vec<AggregatedStatusItem> = serde_json::from_value(serde_json::to_value(&aggregated)?)?;
    cx.patch_status(ResourceBindingStatus { aggregated_status: aggregated }).await?;
    let Some(template) = templates::get(&cx, &namespace, &binding.spec.resource) else {
        return Ok(Action::await_change());
    };
    match binding.spec.resource.kind.as_str() {
        "Deployment" => tell::<Deployment, _>(&cx, template, items).await?,
        "Service" => tell::<Service, _>(&cx, template, items).await?,
        "Pod" => tell::<Pod, _>(&cx, template, items).await?,
        // Others have no status.
        _ => {}
    }
    Ok(Action::await_change())
}

/// Gives the template the status that its members have together.
async fn tell<K, C>(cx: &Context<C>, template: Value, items: Vec<AggregatedStatusItem>) -> Result<()>
where
    K: Object,
    C: Writes<K, Grant: MayPatchStatus<C, K>>,
{
    let aggregation = Aggregation { object: template.clone(), items };
    let Some(told) = ask::<AggregateStatus>(&template, aggregation).await? else { return Ok(()) };
    let Some(change) = change(&template["status"], &told["status"]) else { return Ok(()) };
    cx.objects::<K>().patch_status(&kctl::from_json(template)?, change).await?;
    Ok(())
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

fn binding_of<K: Object>(template: &K, _bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    let name = binding_name(&K::kind(&()), &template.name_any());
    vec![Key::namespaced(&template.namespace().unwrap_or_default(), &name)]
}

fn all_bindings(_cluster: &MemberCluster, bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    bindings.keys()
}
