//! Templates and policies → bindings: what goes out, with how many replicas, and what it needs.

use std::collections::BTreeMap;

use kctl::{
    interpreter::operation::{InterpretDependency, InterpretReplica, Object},
    prelude::*,
};
use serde_json::{Value, json};

use crate::{
    interpret::ask,
    kinds::{PropagationPolicy, RequiredBy, ResourceBinding, ResourceBindingSpec, ResourceRef},
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
    let mut wanted = BTreeMap::new();
    for template in templates::all(&cx, &name) {
        let selects = |policy: &&Arc<PropagationPolicy>| is_selected(&policy.spec.resource_selectors, &template);
        let Some(policy) = policies.iter().find(selects) else { continue };
        let (kind, object) = (text(&template["kind"]), text(&template["metadata"]["name"]));
        let binding = binding_name(kind, object);
        let spec = wanted.entry(binding.clone()).or_insert_with(|| unplaced(kind, object));
        spec.policy = Some(policy.name_any());
        spec.placement = Some(policy.spec.placement.clone());
        let replicas = ask::<InterpretReplica>(&template, Object(template.clone())).await?;
        spec.replicas = replicas.map(|answer| answer.replicas);
        if policy.spec.propagate_deps {
            let clusters = clusters_of(bindings.iter(), &binding);
            for need in needs(&template).await? {
                let spec = wanted.entry(binding_name(&need.kind, &need.name));
                let spec = spec.or_insert_with(|| unplaced(&need.kind, &need.name));
                spec.required_by.push(RequiredBy { binding: binding.clone(), clusters: clusters.clone() });
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
    bindings.converge(desired).await?;
    Ok(Action::await_change())
}

/// The binding of an object before anybody wants it anywhere. What the scheduler decides is not the detector's to say.
fn unplaced(kind: &str, name: &str) -> ResourceBindingSpec {
    ResourceBindingSpec {
        resource: ResourceRef { kind: kind.into(), name: name.into() },
        policy: None,
        replicas: None,
        placement: None,
        required_by: Vec::new(),
        clusters: Vec::new(),
    }
}

/// What a template needs, of the kinds that go to members.
async fn needs(template: &Value) -> Result<Vec<DependentReference>> {
    let needs = ask::<InterpretDependency>(template, Object(template.clone())).await?.flatten().unwrap_or_default();
    Ok(needs.into_iter().filter(|need| is_known(&need.kind) && !need.name.is_empty()).collect())
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
