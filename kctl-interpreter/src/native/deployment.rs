//! The rules of `apps/v1 Deployment`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretReplica` | `spec.replicas`, 0 if absent, and the requirements of `spec.template` | `replica.go`, `deployReplica` |
//! | `ReviseReplica` | sets `spec.replicas` if it exists | `revisereplica.go`, `reviseDeploymentReplica` |
//! | `Retain` | `spec.replicas` of the member cluster, if a label asks for it | `retain.go`, `retainWorkloadReplicas` |
//! | `InterpretStatus` | five counters and three generations | `reflectstatus.go`, `reflectDeploymentStatus` |
//! | `AggregateStatus` | sums of the counters | `aggregatestatus.go`, `aggregateDeploymentStatus` |
//! | `InterpretHealth` | see [`is_healthy`] | `healthy.go`, `interpretDeploymentHealth` |
//! | `InterpretDependency` | references of `spec.template` | `dependencies.go`, `getDeploymentDependencies` |

use serde_json::Value;

use super::{
    NativeError, Result, nested, pod_template,
    workload::{Counters, HEALTH},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::Typed,
};

/// The label that leaves the number of replicas to the member cluster, where a
/// `HorizontalPodAutoscaler` works (`RetainReplicasLabel` in Karmada's `pkg/util/constants.go`).
/// Only the value `true` counts.
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

/// The counters of `DeploymentStatus`. Other fields of the status, such as `conditions`, are not
/// collected, and aggregation keeps them as they are.
pub(super) const COUNTERS: Counters = Counters {
    kind: "Deployment",
    member: "WrappedDeploymentStatus",
    summed: &["replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "unavailableReplicas"],
    quirks: &[],
};

/// Returns `spec.replicas` and the requirements of one Pod of `spec.template`.
pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas_of("Deployment", object)
}

/// Copies `spec.replicas` from the observed object if the desired one has the label
/// [`RETAIN_REPLICAS`] with the value `true`.
///
/// # Errors
/// The label is set, and the observed object has no number in `spec.replicas`.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    let labels = nested::string_map(&desired, &["metadata", "labels"])?;
    if labels.and_then(|labels| labels.get(RETAIN_REPLICAS)).and_then(Value::as_str) == Some("true") {
        let missing = || NativeError::FieldMissing { field: "spec.replicas", object: nested::describe(observed) };
        let replicas = nested::int64(observed, &["spec", "replicas"]).ok().flatten().ok_or_else(missing)?;
        nested::set(&mut desired, &["spec", "replicas"], replicas.into())?;
    }
    Ok(desired)
}

/// Returns `true` if the rollout has ended.
///
/// All of these must hold: `status.observedGeneration` equals `metadata.generation`,
/// `status.updatedReplicas` is at least `spec.replicas`, and `status.availableReplicas` is at least
/// `status.updatedReplicas`. An absent `spec.replicas` passes.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let deployment = Typed::parts_of_object("Deployment", object, HEALTH).map_err(NativeError::object("Deployment"))?;
    let updated = deployment.number("/status/updatedReplicas");
    Ok(deployment.number("/status/observedGeneration") == deployment.number("/metadata/generation")
        && deployment.optional_number("/spec/replicas").is_none_or(|replicas| updated >= replicas)
        && deployment.number("/status/availableReplicas") >= updated)
}

/// Returns the `ConfigMap`s, `Secret`s, service account and claims that the Pod template refers to.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("Deployment", object)
}
