//! Templates and policies → bindings: what goes out, with how many replicas, and what it needs.

use std::collections::BTreeMap;

use kctl::{
    interpreter::operation::{InterpretDependency, InterpretReplica, Object},
    prelude::*,
};
use serde_json::{Map, Value, json};

use crate::{
    interpret::ask,
    kinds::{PropagationPolicy, ResourceBinding},
    templates::{self, binding_name, is_known, is_selected},
};

/// Makes the bindings of a namespace: of each template that a policy selects, and of what such a template needs.
#[controller(
    owns = ResourceBinding(apply, delete),
    watches = PropagationPolicy(map = namespace_of),
    watches = Deployment(map = namespace_of),
    watches = Service(map = namespace_of),
    watches = ConfigMap(map = namespace_of),
    watches = Secret(map = namespace_of),
    watches = Pod(map = namespace_of),
    name = "detector"
)]
pub(crate) async fn detector(namespace: Arc<Namespace>, cx: Context<detector>) -> Result<Action> {
    let name = namespace.name_any();
    let mut policies: Vec<_> = cx.store::<PropagationPolicy>().in_namespace(&name).collect();
    policies.sort_by_key(|policy| policy.name_any());
    let bindings = cx.owned::<ResourceBinding>();
    let mut wanted: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for template in templates::all(&cx, &name) {
        let Some(policy) = policies.iter().find(|policy| is_selected(&policy.spec.resource_selectors, &template))
        else {
            continue;
        };
        let (kind, object) = (text(&template["kind"]), text(&template["metadata"]["name"]));
        let binding = binding_name(kind, object);
        let spec = wanted.entry(binding.clone()).or_default();
        spec.insert("resource".into(), json!({ "kind": kind, "name": object }));
        spec.insert("policy".into(), policy.name_any().into());
        spec.insert("placement".into(), serde_json::to_value(&policy.spec.placement)?);
        if let Some(answer) = ask::<InterpretReplica>(&template, Object(template.clone())).await? {
            spec.insert("replicas".into(), answer.replicas.into());
        }
        if policy.spec.propagate_deps {
            let clusters = clusters_of(bindings.iter(), &binding);
            let needs = ask::<InterpretDependency>(&template, Object(template.clone())).await?.flatten();
            for need in
                needs.unwrap_or_default().into_iter().filter(|need| is_known(&need.kind) && !need.name.is_empty())
            {
                let spec = wanted.entry(binding_name(&need.kind, &need.name)).or_default();
                spec.insert("resource".into(), json!({ "kind": need.kind, "name": need.name }));
                let by = spec.entry("requiredBy").or_insert_with(|| json!([]));
                by.as_array_mut().map(|by| by.push(json!({ "binding": binding, "clusters": clusters })));
            }
        }
    }
    let desired = wanted.into_iter().map(|(binding, spec)| {
        json!({
            "apiVersion": "fleet.example.com/v1alpha1",
            "kind": "ResourceBinding",
            "metadata": { "name": binding, "namespace": name },
            "spec": spec,
        })
    });
    cx.owned::<ResourceBinding>().converge(desired).await?;
    Ok(Action::await_change())
}

/// Where a binding is by now.
fn clusters_of(bindings: impl Iterator<Item = Arc<ResourceBinding>>, name: &str) -> Vec<String> {
    let mut found = bindings.filter(|binding| binding.name_any() == name);
    found.next().map_or_else(Vec::new, |binding| binding.spec.clusters.iter().map(|c| c.name.clone()).collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn namespace_of<K: ResourceExt>(object: &K, _namespaces: &Store<Namespace>) -> Vec<Key<Namespace>> {
    object.namespace().iter().map(|name| Key::cluster(name)).collect()
}
