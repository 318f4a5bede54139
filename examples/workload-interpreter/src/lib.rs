//! A resource interpreter webhook for Karmada: one annotated function per operation, for the kind `Workload`.
//!
//! The kind is the same as in Karmada's interpreter webhook example, so that both can be compared. A function receives
//! typed objects. The framework decodes the request and encodes the response as a patch.
//!
//! ```text
//! cargo run -p workload-interpreter -- run --webhook-bind-address 127.0.0.1:9443
//! cargo run -p workload-interpreter -- generate-manifests
//! ```
use kctl::{karmada::prelude::*, prelude::*};

/// The kind of Karmada's own example: a number of pods from a template.
#[resource(
    group = "workload.example.io",
    version = "v1alpha1",
    kind = "Workload",
    namespaced,
    status = "WorkloadStatus"
)]
pub struct WorkloadSpec {
    pub replicas: Option<i32>,
    pub template: PodTemplateSpec,
    #[serde(default)]
    pub paused: bool,
}

#[schema]
#[derive(Default)]
pub struct WorkloadStatus {
    #[serde(default)]
    pub ready_replicas: i32,
}

/// Returns the number of replicas to divide among clusters.
#[interpreter(op = InterpretReplica)]
fn replicas(workload: &Workload) -> Result<Replicas> {
    Ok(Replicas { replicas: desired_replicas(workload), requirements: None })
}

/// Returns the components of a Workload, for control planes that schedule several pod templates per object. A Workload
/// has one.
#[interpreter(op = InterpretComponent)]
fn components(workload: &Workload) -> Result<Vec<Component>> {
    Ok(vec![Component { name: "main".into(), replicas: desired_replicas(workload), replica_requirements: None }])
}

/// Sets the number of replicas for one cluster.
#[interpreter(op = ReviseReplica)]
fn revise(workload: &mut Workload, replicas: i32) -> Result<()> {
    workload.spec.replicas = Some(replicas);
    Ok(())
}

/// Keeps `spec.paused` as the member cluster set it.
#[interpreter(op = Retain)]
fn retain(desired: &mut Workload, observed: &Workload) -> Result<()> {
    desired.spec.paused = observed.spec.paused;
    Ok(())
}

/// Returns the status that the control plane collects.
#[interpreter(op = InterpretStatus)]
fn status(workload: &Workload) -> Result<WorkloadStatus> {
    Ok(workload.status.clone().unwrap_or_default())
}

/// Adds up the statuses of all clusters that have reported one.
#[interpreter(op = AggregateStatus)]
fn aggregate(workload: &mut Workload, items: &[ClusterStatus<WorkloadStatus>]) -> Result<()> {
    let reported = items.iter().filter_map(|item| item.status.as_ref());
    workload.status = Some(WorkloadStatus { ready_replicas: reported.map(|status| status.ready_replicas).sum() });
    Ok(())
}

/// Returns the `ConfigMap` of the first container, which has to be on the same clusters as the Workload.
#[interpreter(op = InterpretDependency)]
fn dependencies(workload: &Workload) -> Result<Vec<DependentReference>> {
    let containers = workload.spec.template.spec.iter().flat_map(|spec| &spec.containers);
    let sources = containers.take(1).flat_map(|container| container.env_from.iter().flatten()).take(1);
    let config_maps = sources.filter_map(|source| source.config_map_ref.as_ref());
    let names = config_maps.map(|config_map| config_map.name.clone()).filter(|name| !name.is_empty());
    Ok(names.map(|name| config_map(name, workload.namespace().unwrap_or_default())).collect())
}

/// Returns `true` if all pods of the Workload are ready.
#[interpreter(op = InterpretHealth)]
fn health(workload: &Workload) -> Result<bool> {
    Ok(workload.status.as_ref().is_some_and(|status| status.ready_replicas == desired_replicas(workload)))
}

/// Returns the wanted number of replicas, which defaults to one.
fn desired_replicas(workload: &Workload) -> i32 {
    workload.spec.replicas.unwrap_or(1)
}

/// Returns the reference to a `ConfigMap`.
fn config_map(name: String, namespace: String) -> DependentReference {
    DependentReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace,
        name,
        ..DependentReference::default()
    }
}

/// Returns the program, which serves one webhook for all operations.
pub fn app() -> App {
    App::new("workload-interpreter")
        .interpreter::<(replicas, components, revise, retain, status, aggregate, dependencies, health)>()
}

#[cfg(test)]
mod tests;
