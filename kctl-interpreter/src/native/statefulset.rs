//! The rules of `apps/v1 StatefulSet`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretReplica` | `spec.replicas`, 0 if absent, and the requirements of `spec.template` | `replica.go`, `statefulSetReplica` |
//! | `ReviseReplica` | sets `spec.replicas` if it exists | `revisereplica.go`, `reviseStatefulSetReplica` |
//! | `InterpretStatus` | five counters and two generations | `reflectstatus.go`, `reflectStatefulSetStatus` |
//! | `AggregateStatus` | sums of the counters | `aggregatestatus.go`, `aggregateStatefulSetStatus` |
//! | `InterpretHealth` | see [`is_healthy`] | `healthy.go`, `interpretStatefulSetHealth` |
//! | `InterpretDependency` | references of `spec.template` but for its own claims | `dependencies.go`, `getStatefulSetDependencies` |

use serde_json::Value;

use super::{
    NativeError, Result, pod_template,
    workload::{Counters, HEALTH, Quirk},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::{Parts, Typed},
};

/// The counters of `StatefulSetStatus`.
///
/// Since `observedGeneration` is not collected, a member cluster counts as caught up only while its own
/// generation is 0.
pub(super) const COUNTERS: Counters = Counters {
    kind: "StatefulSet",
    member: "WrappedStatefulSetStatus",
    summed: &["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"],
    quirks: &[Quirk::OmitsObservedGeneration, Quirk::ReadsAnnotationFirst, Quirk::ComparesMemberGeneration],
};

/// Returns `spec.replicas` and the requirements of one Pod of `spec.template`.
pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas_of("StatefulSet", object)
}

/// Returns `true` if the rollout has ended: the same three comparisons as for a Deployment, with
/// `updatedReplicas`, `availableReplicas` and `observedGeneration` of the status.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let set = Typed::parts_of_object("StatefulSet", object, HEALTH).map_err(NativeError::object("StatefulSet"))?;
    let updated = set.number("/status/updatedReplicas");
    Ok(set.number("/status/observedGeneration") == set.number("/metadata/generation")
        && set.optional_number("/spec/replicas").is_none_or(|replicas| updated >= replicas)
        && set.number("/status/availableReplicas") >= updated)
}

/// The parts of the object that [`dependencies`] needs in addition to the Pod template: the names of
/// `spec.volumeClaimTemplates`.
const CLAIM_NAMES: Parts = &[
    ("StatefulSet", &["spec"]),
    ("StatefulSetSpec", &["volumeClaimTemplates"]),
    ("PersistentVolumeClaim", &["metadata"]),
    ("ObjectMeta", &["name"]),
];

/// Returns the references of the Pod template, without the `PersistentVolumeClaim`s of
/// `spec.volumeClaimTemplates`.
///
/// A volume of the template can name such a claim. The `StatefulSet` creates it in each cluster, so
/// it must not be copied from the control plane.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let set = Typed::parts_of_object("StatefulSet", object, CLAIM_NAMES).map_err(NativeError::object("StatefulSet"))?;
    let templates = set.list("/spec/volumeClaimTemplates");
    let is_made = |name: &str| templates.iter().any(|template| template["metadata"]["name"] == *name);
    let mut found = pod_template::dependencies_of("StatefulSet", object)?;
    found.retain(|reference| reference.kind != "PersistentVolumeClaim" || !is_made(&reference.name));
    Ok(found)
}
