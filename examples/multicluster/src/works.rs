//! A binding with its clusters → a work for each: the object as it is to be there.

use kctl::{
    interpreter::operation::{Object, Prune, ReviseReplica, Revision},
    object,
    prelude::*,
};
use serde_json::{Value, json};

use crate::{
    interpret::ask,
    kinds::{BindingCluster, OverridePolicy, ResourceBinding, Work},
    overrides,
    templates::{self, binding_name},
};

/// On works: the cluster, for those who bring them there.
pub(crate) const CLUSTER: &str = "fleet.example.com/cluster";
/// On manifests: the generation of the template, so that a status says which one it is about.
const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// Makes the works of a binding.
#[controller(
    owns = Work(apply, delete),
    watches = OverridePolicy(map = bindings_of_the_namespace),
    watches = Deployment(map = binding_of),
    watches = Service(map = binding_of),
    watches = ConfigMap(map = binding_of),
    watches = Secret(map = binding_of),
    watches = Pod(map = binding_of),
    primary(when = generation_changed),
    name = "works"
)]
pub(crate) async fn works(binding: Arc<ResourceBinding>, cx: Context<works>) -> Result<Action> {
    let namespace = binding.namespace().unwrap_or_default();
    let policies: Vec<_> = cx.store::<OverridePolicy>().in_namespace(&namespace).collect();
    let mut works = Vec::new();
    if let Some(template) = templates::get(&cx, &namespace, &binding.spec.resource) {
        for cluster in &binding.spec.clusters {
            let mut manifest = manifest(&template, cluster).await?;
            overrides::apply(&policies, &cluster.name, &mut manifest)?;
            works.push(json!({
                "apiVersion": "fleet.example.com/v1alpha1",
                "kind": "Work",
                "metadata": {
                    "name": work_name(&binding.name_any(), &cluster.name),
                    "namespace": namespace,
                    "labels": { CLUSTER: cluster.name },
                },
                "spec": { "cluster": cluster.name, "manifest": manifest },
            }));
        }
    }
    cx.owned::<Work>().converge(works).await?;
    Ok(Action::await_change())
}

/// The name of the work of a binding for a cluster.
pub(crate) fn work_name(binding: &str, cluster: &str) -> String {
    format!("{binding}-{cluster}")
}

/// The template without what is the control plane's, with the replicas of the cluster.
async fn manifest(template: &Value, cluster: &BindingCluster) -> Result<Value> {
    let generation = template["metadata"]["generation"].as_i64();
    let mut manifest = match ask::<Prune>(template, Object(template.clone())).await? {
        Some(pruned) => pruned,
        None => template.clone(),
    };
    if let Some(fields) = manifest.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.retain(|field, _| ["name", "namespace", "labels", "annotations"].contains(&field.as_str()));
        if let Some(generation) = generation {
            metadata.entry("annotations").or_insert_with(|| json!({}))[TEMPLATE_GENERATION] =
                generation.to_string().into();
        }
    }
    let Some(replicas) = cluster.replicas else { return Ok(manifest) };
    let revision = Revision { object: manifest.clone(), replicas: replicas.into() };
    Ok(ask::<ReviseReplica>(&manifest, revision).await?.unwrap_or(manifest))
}

fn binding_of<K: object::Object>(template: &K, _bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    let name = binding_name(&K::kind(&()), &template.name_any());
    vec![Key::namespaced(&template.namespace().unwrap_or_default(), &name)]
}

fn bindings_of_the_namespace(policy: &OverridePolicy, bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    bindings.in_namespace(&policy.namespace().unwrap_or_default()).map(|binding| Key::of(&*binding)).collect()
}
