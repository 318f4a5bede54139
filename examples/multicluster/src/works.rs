//! The controller `works`: creates a work for each cluster of a binding, with the manifest for that cluster.
//!
//! The manifest is the pruned template with the cluster's replicas and the patches of `OverridePolicy`s.

use std::collections::BTreeMap;

use kctl::{
    karmada::{
        kind::Gvk,
        operation::{Object, Prune, ReviseReplica, Revision},
    },
    object::Stored,
    prelude::*,
};
use kctl_interpreter::division::divide;
use serde_json::{Value, json};

use crate::{
    found::{Finds, FoundKinds},
    interpret::Rules,
    kinds::{BindingCluster, Division, OverridePolicy, ResourceBinding, ResourceBindingSpec, Work},
    overrides,
    templates::{binding_of, reading},
};

/// Label of works with the name of their cluster. Each execution controller watches the works of its member.
pub(crate) const CLUSTER: &str = "fleet.example.com/cluster";
/// Annotation on manifests with the generation of the template, so that an aggregated status can refer to it.
const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// Creates, updates and deletes the works of a binding.
#[controller(
    of = ResourceBinding,
    owns = Work(apply, delete),
    watches = OverridePolicy(map = bindings_of_the_namespace),
    rbac(reading()),
    primary(when = generation_changed),
    name = "works"
)]
pub(crate) struct Works {
    /// Templates on the control plane.
    templates: FoundKinds,
    /// The interpreters, which prune a template and set its replicas for each cluster.
    rules: Rules,
}

impl Finds for Works {
    fn with(templates: FoundKinds, rules: Rules) -> Self {
        Self { templates, rules }
    }

    /// Maps a template to its binding, so that a changed template updates its works.
    fn key_of(kind: &Gvk, template: &Stored) -> Option<Key<ResourceBinding>> {
        binding_of(kind, template)
    }
}

impl Reconcile for Works {
    /// Converges the works of a binding. If its template is gone, all its works are deleted.
    async fn reconcile(&self, binding: Arc<ResourceBinding>, cx: Context<Self>) -> Result<Action> {
        let namespace = binding.namespace().unwrap_or_default();
        let policies: Vec<_> = cx.store::<OverridePolicy>().in_namespace(&namespace).collect();
        let resource = &binding.spec.resource;
        let mut works = Vec::new();
        if let Some(template) = self.templates.get(&resource.gvk(), &namespace, &resource.name).await? {
            let completions = completions(&template, &binding.spec);
            for cluster in &binding.spec.clusters {
                let mut manifest = manifest(&self.rules, &template, cluster).await?;
                if let Some(share) = completions.get(&cluster.name) {
                    manifest["spec"]["completions"] = (*share).into();
                }
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
}

/// Returns the name of a binding's work for a cluster.
pub(crate) fn work_name(binding: &str, cluster: &str) -> String {
    format!("{binding}-{cluster}")
}

/// Returns the manifest for a cluster: the template without fields of the control plane, and with the cluster's
/// replicas.
///
/// The interpreter operations `Prune` and `ReviseReplica` do the part that depends on the kind.
async fn manifest(rules: &Rules, template: &Value, cluster: &BindingCluster) -> Result<Value> {
    let generation = template["metadata"]["generation"].as_i64();
    let mut manifest = match rules.interpret::<Prune>(Object(template.clone())).await? {
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
    Ok(rules.interpret::<ReviseReplica>(revision).await?.unwrap_or(manifest))
}

/// Returns the completions of a divided Job by cluster, in proportion to the replicas. Otherwise each cluster would run
/// all completions.
fn completions(template: &Value, spec: &ResourceBindingSpec) -> BTreeMap<String, i32> {
    let is_divided = spec.placement.as_ref().is_some_and(|placement| placement.replicas == Division::Divided);
    let completions = template["spec"]["completions"].as_i64().and_then(|all| i32::try_from(all).ok());
    let Some(completions) = completions.filter(|_| is_divided && is_job(template)) else { return BTreeMap::new() };
    let replicas = spec.clusters.iter().filter_map(|cluster| Some((cluster.name.clone(), cluster.replicas?.into())));
    let uid = template["metadata"]["uid"].as_str().unwrap_or_default();
    let shares = divide(completions, &replicas.collect(), &BTreeMap::new(), uid);
    shares.into_iter().map(|share| (share.name, share.replicas)).collect()
}

/// Returns `true` for a `batch/v1` Job.
fn is_job(template: &Value) -> bool {
    template["apiVersion"] == "batch/v1" && template["kind"] == "Job"
}

/// Returns the keys of all bindings in a policy's namespace, because a changed selector may affect any of them.
fn bindings_of_the_namespace(policy: &OverridePolicy, bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    bindings.in_namespace(&policy.namespace().unwrap_or_default()).map(|binding| Key::from_object(&*binding)).collect()
}
