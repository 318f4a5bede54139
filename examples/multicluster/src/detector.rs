//! The controller `detector`: creates a binding for each template that a policy selects, and for its dependencies.
//!
//! A binding records the object to distribute, its replicas, and its policy. The scheduler sets the clusters.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    karmada::{
        kind::Gvk,
        operation::{InterpretDependency, InterpretReplica, Object},
    },
    object::Stored,
    prelude::*,
};
use serde_json::{Value, json};

use crate::{
    found::{Finds, FoundKinds},
    interpret::Rules,
    kinds::{PropagationPolicy, RequiredBy, ResourceBinding, ResourceBindingSpec, ResourceRef},
    policies::CRD_CHECK_INTERVAL,
    templates::{is_selected, may_propagate, reading},
};

/// Creates the bindings of a namespace.
///
/// The primary is the Namespace, because the policies of a namespace compete. The first matching policy by name gets a
/// template, so one reconcile has to see all policies.
#[controller(
    of = Namespace,
    owns = ResourceBinding(apply, delete),
    watches = PropagationPolicy(map = namespace_of),
    rbac(reading()),
    name = "detector"
)]
pub(crate) struct Detector {
    /// Templates on the control plane.
    templates: FoundKinds,
    /// The interpreters, which read replicas and dependencies from a template.
    rules: Rules,
}

impl Finds for Detector {
    fn with(templates: FoundKinds, rules: Rules) -> Self {
        Self { templates, rules }
    }

    /// Maps a template to its namespace. Cluster-scoped templates are not propagated.
    fn key_of(_kind: &Gvk, template: &Stored) -> Option<Key<Namespace>> {
        template.meta().namespace().map(Key::cluster_scoped)
    }
}

impl Reconcile for Detector {
    /// Converges the bindings of a namespace to those that its policies and templates need.
    ///
    /// If an interpreter fails for a template, the other templates are still handled, and the error is returned at the
    /// end. A kind that is not installed yet is looked up again.
    async fn reconcile(&self, namespace: Arc<Namespace>, cx: Context<Self>) -> Result<Action> {
        let name = namespace.name_any();
        let mut policies: Vec<_> = cx.store::<PropagationPolicy>().in_namespace(&name).collect();
        policies.sort_by_key(|policy| policy.name_any());
        let selectors = policies.iter().flat_map(|policy| &policy.spec.resource_selectors);
        let kinds: BTreeSet<Gvk> = selectors.map(|selector| selector.gvk()).filter(may_propagate).collect();
        let bindings = cx.owned::<ResourceBinding>();
        let (mut wanted, mut missing, mut failed) = (BTreeMap::new(), false, None);
        for kind in kinds {
            let Some(templates) = self.templates.all(&kind, &name).await? else {
                missing = true;
                continue;
            };
            for template in templates {
                let selects =
                    |policy: &&Arc<PropagationPolicy>| is_selected(&policy.spec.resource_selectors, &template);
                let Some(policy) = policies.iter().find(selects) else { continue };
                let resource = reference(&kind, text(&template["metadata"]["name"]));
                let clusters = clusters_of(bindings.iter(), &resource.binding());
                let binding = resource.binding();
                if let Err(error) = self.add_binding(&mut wanted, policy, resource, &template, &clusters).await {
                    // A failing interpreter of one kind must not block other kinds. The binding is left unchanged.
                    keep_existing(&mut wanted, &binding, bindings.iter());
                    failed = Some(error);
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
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(if missing { Action::requeue(CRD_CHECK_INTERVAL) } else { Action::await_change() })
    }
}

impl Detector {
    /// Adds the binding of a template and, with `propagateDeps`, the bindings of its dependencies.
    ///
    /// Dependencies go to the clusters that the template's binding currently lists. So they follow one reconcile after
    /// the scheduler has chosen the clusters.
    async fn add_binding(
        &self,
        wanted: &mut BTreeMap<String, ResourceBindingSpec>,
        policy: &PropagationPolicy,
        resource: ResourceRef,
        template: &Value,
        clusters: &[String],
    ) -> Result<()> {
        let replicas = self.rules.interpret::<InterpretReplica>(Object(template.clone())).await?;
        let needs = if policy.spec.propagate_deps { self.dependencies_of(template).await? } else { Vec::new() };
        let binding = resource.binding();
        let spec = wanted.entry(binding.clone()).or_insert_with(|| unplaced_binding(resource));
        spec.policy = Some(policy.name_any());
        spec.placement = Some(policy.spec.placement.clone());
        spec.replicas = replicas.map(|answer| answer.replicas);
        for need in needs {
            let spec = wanted.entry(need.binding()).or_insert_with(|| unplaced_binding(need));
            spec.required_by.push(RequiredBy { binding: binding.clone(), clusters: clusters.to_vec() });
        }
        Ok(())
    }

    /// Returns the dependencies that a template refers to by name. Dependencies by label selector are skipped.
    async fn dependencies_of(&self, template: &Value) -> Result<Vec<ResourceRef>> {
        let needs =
            self.rules.interpret::<InterpretDependency>(Object(template.clone())).await?.flatten().unwrap_or_default();
        let named = needs.into_iter().filter(|need| !need.name.is_empty());
        let needs = named.map(|need| ResourceRef { api_version: need.api_version, kind: need.kind, name: need.name });
        Ok(needs.filter(|need| may_propagate(&need.gvk())).collect())
    }
}

/// Adds the existing binding of a template whose interpreter failed, and its dependencies, so that `converge` keeps
/// them.
fn keep_existing(
    wanted: &mut BTreeMap<String, ResourceBindingSpec>,
    binding: &str,
    bindings: impl Iterator<Item = Arc<ResourceBinding>>,
) {
    for known in bindings {
        let (name, now) = (known.name_any(), &known.spec);
        let required = now.required_by.iter().find(|by| by.binding == binding);
        if name != binding && required.is_none() {
            continue;
        }
        let spec = wanted.entry(name.clone()).or_insert_with(|| unplaced_binding(now.resource.clone()));
        if name == binding {
            (spec.policy, spec.replicas, spec.placement) = (now.policy.clone(), now.replicas, now.placement.clone());
        }
        spec.required_by.extend(required.cloned());
    }
}

/// Returns a binding for an object without policy and clusters. The detector never sets clusters, because the scheduler
/// owns that field.
fn unplaced_binding(resource: ResourceRef) -> ResourceBindingSpec {
    ResourceBindingSpec {
        resource,
        policy: None,
        replicas: None,
        placement: None,
        required_by: Vec::new(),
        clusters: Vec::new(),
    }
}

/// Returns the reference to an object.
fn reference(kind: &Gvk, name: &str) -> ResourceRef {
    ResourceRef { api_version: kind.api_version(), kind: kind.kind.clone(), name: name.into() }
}

/// Returns the clusters of an existing binding, or an empty list if the binding does not exist.
fn clusters_of(bindings: impl Iterator<Item = Arc<ResourceBinding>>, name: &str) -> Vec<String> {
    let mut found = bindings.filter(|binding| binding.name_any() == name);
    found.next().map_or_else(Vec::new, |binding| binding.spec.clusters.iter().map(|c| c.name.clone()).collect())
}

/// Returns a string value, or an empty string for a value of another type.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the key of the namespace of an object. Namespaces are the primaries of this controller.
fn namespace_of<K: ResourceExt>(object: &K, _namespaces: &Store<Namespace>) -> Vec<Key<Namespace>> {
    object.namespace().iter().map(|name| Key::cluster_scoped(name)).collect()
}
