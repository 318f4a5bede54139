//! The rules of `apps/v1 DaemonSet`. A `DaemonSet` has no replicas to divide: each cluster runs one
//! Pod per node.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretStatus` | seven counters and three generations | `reflectstatus.go`, `reflectDaemonSetStatus` |
//! | `AggregateStatus` | sums of the counters | `aggregatestatus.go`, `aggregateDaemonSetStatus` |
//! | `InterpretHealth` | see [`is_healthy`] | `healthy.go`, `interpretDaemonSetHealth` |
//! | `InterpretDependency` | references of `spec.template` | `dependencies.go`, `getDaemonSetDependencies` |

use serde_json::Value;

use super::{
    NativeError, Result, pod_template,
    workload::{Counters, HEALTH, Quirk},
};
use crate::{operation::DependentReference, typed::Typed};

/// The counters of `DaemonSetStatus`. Karmada compares the whole status, so an object with
/// `conditions` or a `collisionCount` counts as changed even if all sums are equal.
pub(super) const COUNTERS: Counters = Counters {
    kind: "DaemonSet",
    member: "WrappedDaemonSetStatus",
    summed: &[
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberAvailable",
        "numberMisscheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberUnavailable",
    ],
    quirks: &[Quirk::ComparesWholeStatus],
};

/// Returns `true` if the rollout has ended.
///
/// All of these must hold: `status.observedGeneration` equals `metadata.generation`,
/// `status.updatedNumberScheduled` is at least `status.desiredNumberScheduled`, and
/// `status.numberAvailable` is at least `status.updatedNumberScheduled`.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let set = Typed::parts_of_object("DaemonSet", object, HEALTH).map_err(NativeError::object("DaemonSet"))?;
    let updated = set.number("/status/updatedNumberScheduled");
    Ok(set.number("/status/observedGeneration") == set.number("/metadata/generation")
        && updated >= set.number("/status/desiredNumberScheduled")
        && set.number("/status/numberAvailable") >= updated)
}

/// Returns the `ConfigMap`s, `Secret`s, service account and claims that the Pod template refers to.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("DaemonSet", object)
}
