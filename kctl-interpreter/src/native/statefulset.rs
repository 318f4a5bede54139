//! `StatefulSet`s.

use serde_json::Value;

use super::{
    NativeError, Result, pod_template,
    workload::{Counters, HEALTH},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::{Parts, Typed},
};

pub(super) const COUNTERS: Counters = Counters {
    kind: "StatefulSet",
    member: "WrappedStatefulSetStatus",
    summed: &["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"],
    is_observed_collected: false,
    is_annotation_read_first: true,
    is_template_generation_ignored: true,
    is_whole_status_compared: false,
};

pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas_of("StatefulSet", object)
}

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let set = Typed::parts_of_object("StatefulSet", object, HEALTH).map_err(NativeError::object("StatefulSet"))?;
    let updated = set.number("/status/updatedReplicas");
    Ok(set.number("/status/observedGeneration") == set.number("/metadata/generation")
        && set.optional_number("/spec/replicas").is_none_or(|replicas| updated >= replicas)
        && set.number("/status/availableReplicas") >= updated)
}

const CLAIM_NAMES: Parts = &[
    ("StatefulSet", &["spec"]),
    ("StatefulSetSpec", &["volumeClaimTemplates"]),
    ("PersistentVolumeClaim", &["metadata"]),
    ("ObjectMeta", &["name"]),
];

/// The claims that the set makes for its pods are no dependencies: each cluster makes its own.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let set = Typed::parts_of_object("StatefulSet", object, CLAIM_NAMES).map_err(NativeError::object("StatefulSet"))?;
    let templates = set.list("/spec/volumeClaimTemplates");
    let is_made = |name: &str| templates.iter().any(|template| template["metadata"]["name"] == *name);
    let mut found = pod_template::dependencies_of("StatefulSet", object)?;
    found.retain(|reference| reference.kind != "PersistentVolumeClaim" || !is_made(&reference.name));
    Ok(found)
}
