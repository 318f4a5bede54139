//! Templates: the objects of the control plane that go to members. The kinds are listed here.

use kctl::{object::Object, prelude::*};
use serde_json::Value;

use crate::kinds::{ResourceRef, ResourceSelector};

/// A controller that reads all of them.
pub(crate) trait ReadsTemplates:
    Reads<Deployment> + Reads<Service> + Reads<ConfigMap> + Reads<Secret> + Reads<Pod>
{
}
impl<C: Reads<Deployment> + Reads<Service> + Reads<ConfigMap> + Reads<Secret> + Reads<Pod>> ReadsTemplates for C {}

/// The templates of a namespace, by kind and name.
pub(crate) fn all<C: ReadsTemplates>(cx: &Context<C>, namespace: &str) -> Vec<Value> {
    let stores = [
        of(&cx.store::<Deployment>(), namespace),
        of(&cx.store::<Service>(), namespace),
        of(&cx.store::<ConfigMap>(), namespace),
        of(&cx.store::<Secret>(), namespace),
        of(&cx.store::<Pod>(), namespace),
    ];
    stores.concat()
}

fn of<K: Object>(store: &Store<K>, namespace: &str) -> Vec<Value> {
    let mut alive: Vec<_> =
        store.in_namespace(namespace).filter(|object| object.meta().deletion_timestamp.is_none()).collect();
    alive.sort_by_key(|object| object.name_any());
    alive.iter().filter_map(|object| serde_json::to_value(&**object).ok()).collect()
}

/// One template.
pub(crate) fn get<C: ReadsTemplates>(cx: &Context<C>, namespace: &str, resource: &ResourceRef) -> Option<Value> {
    let name = resource.name.as_str();
    match resource.kind.as_str() {
        "Deployment" => one(&cx.store::<Deployment>(), namespace, name),
        "Service" => one(&cx.store::<Service>(), namespace, name),
        "ConfigMap" => one(&cx.store::<ConfigMap>(), namespace, name),
        "Secret" => one(&cx.store::<Secret>(), namespace, name),
        "Pod" => one(&cx.store::<Pod>(), namespace, name),
        _ => None,
    }
}

fn one<K: Object>(store: &Store<K>, namespace: &str, name: &str) -> Option<Value> {
    let object = store.get(&Key::namespaced(namespace, name))?;
    let is_alive = object.meta().deletion_timestamp.is_none();
    is_alive.then(|| serde_json::to_value(&*object).ok()).flatten()
}

/// Whether templates of a kind can go to members.
pub(crate) fn is_known(kind: &str) -> bool {
    ["Deployment", "Service", "ConfigMap", "Secret", "Pod"].contains(&kind)
}

/// The name of the binding of a template.
pub(crate) fn binding_name(kind: &str, name: &str) -> String {
    format!("{}-{name}", kind.to_lowercase())
}

/// Whether one of the selectors names the template.
pub(crate) fn is_selected(selectors: &[ResourceSelector], template: &Value) -> bool {
    let metadata = &template["metadata"];
    selectors.iter().any(|selector| {
        let named = selector.name.is_empty() || metadata["name"] == *selector.name;
        let labelled = selector.labels.iter().all(|(key, value)| metadata["labels"][key] == **value);
        template["kind"] == *selector.kind && named && labelled
    })
}
