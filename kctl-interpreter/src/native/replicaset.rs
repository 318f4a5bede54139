//! `ReplicaSet`s.

use serde_json::Value;

use super::{
    NativeError, Result, pod_template,
    workload::{Counters, HEALTH},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::Typed,
};

pub(super) const COUNTERS: Counters = Counters {
    kind: "ReplicaSet",
    member: "WrappedReplicaSetStatus",
    summed: &["replicas", "readyReplicas", "availableReplicas"],
    is_observed_collected: true,
    is_annotation_read_first: false,
    is_template_generation_ignored: false,
    is_whole_status_compared: false,
};

pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas_of("ReplicaSet", object)
}

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let set = Typed::parts_of_object("ReplicaSet", object, HEALTH).map_err(NativeError::object("ReplicaSet"))?;
    let available = set.number("/status/availableReplicas");
    Ok(set.number("/status/observedGeneration") == set.number("/metadata/generation")
        && set.optional_number("/spec/replicas").is_none_or(|replicas| available >= replicas))
}

pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("ReplicaSet", object)
}
