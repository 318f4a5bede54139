//! `DaemonSet`s.

use serde_json::Value;

use super::{
    NativeError, Result, pod_template,
    workload::{Counters, HEALTH},
};
use crate::{operation::DependentReference, typed::Typed};

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
    is_observed_collected: true,
    is_annotation_read_first: false,
    is_template_generation_ignored: false,
    is_whole_status_compared: true,
};

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let set = Typed::parts_of_object("DaemonSet", object, HEALTH).map_err(NativeError::object("DaemonSet"))?;
    let updated = set.number("/status/updatedNumberScheduled");
    Ok(set.number("/status/observedGeneration") == set.number("/metadata/generation")
        && updated >= set.number("/status/desiredNumberScheduled")
        && set.number("/status/numberAvailable") >= updated)
}

pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("DaemonSet", object)
}
