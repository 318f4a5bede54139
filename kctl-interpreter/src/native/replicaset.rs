//! The rules of `apps/v1 ReplicaSet`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretReplica` | `spec.replicas`, 0 if absent, and the requirements of `spec.template` | `replica.go`, `replicaSetReplica` |
//! | `ReviseReplica` | sets `spec.replicas` if it exists | `revisereplica.go`, `reviseReplicaSetReplica` |
//! | `InterpretStatus` | three counters and three generations | `reflectstatus.go`, `reflectReplicaSetStatus` |
//! | `AggregateStatus` | sums of the counters | `aggregatestatus.go`, `aggregateReplicaSetStatus` |
//! | `InterpretHealth` | see [`is_healthy`] | `healthy.go`, `interpretReplicaSetHealth` |
//! | `InterpretDependency` | references of `spec.template` | `dependencies.go`, `getReplicaSetDependencies` |

use serde_json::Value;

use super::{
    NativeError, Result, pod_template,
    workload::{Counters, HEALTH},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::Typed,
};

/// The counters of `ReplicaSetStatus`. `fullyLabeledReplicas` and `conditions` are not collected.
pub(super) const COUNTERS: Counters = Counters {
    kind: "ReplicaSet",
    member: "WrappedReplicaSetStatus",
    summed: &["replicas", "readyReplicas", "availableReplicas"],
    quirks: &[],
};

/// Returns `spec.replicas` and the requirements of one Pod of `spec.template`.
pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas_of("ReplicaSet", object)
}

/// Returns `true` if `status.observedGeneration` equals `metadata.generation`, and
/// `status.availableReplicas` is at least `spec.replicas`. An absent `spec.replicas` passes.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let set = Typed::parts_of_object("ReplicaSet", object, HEALTH).map_err(NativeError::object("ReplicaSet"))?;
    let available = set.number("/status/availableReplicas");
    Ok(set.number("/status/observedGeneration") == set.number("/metadata/generation")
        && set.optional_number("/spec/replicas").is_none_or(|replicas| available >= replicas))
}

/// Returns the `ConfigMap`s, `Secret`s, service account and claims that the Pod template refers to.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("ReplicaSet", object)
}
