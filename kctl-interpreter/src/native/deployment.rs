//! Deployments.

use serde_json::Value;

use super::{
    NativeError, Result, nested, pod_template,
    workload::{Counters, HEALTH},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::Typed,
};

/// The label of the control plane's object that leaves the number of replicas to the cluster, where an autoscaler
/// works (`RetainReplicasLabel` in Karmada's `pkg/util/constants.go`).
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

pub(super) const COUNTERS: Counters = Counters {
    kind: "Deployment",
    member: "WrappedDeploymentStatus",
    summed: &["replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "unavailableReplicas"],
    is_observed_collected: true,
    is_annotation_read_first: false,
    is_template_generation_ignored: false,
    is_whole_status_compared: false,
};

pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas_of("Deployment", object)
}

pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    let labels = nested::string_map(&desired, &["metadata", "labels"])?;
    if labels.and_then(|labels| labels.get(RETAIN_REPLICAS)).and_then(Value::as_str) == Some("true") {
        let missing = || NativeError::FieldMissing { field: "spec.replicas", object: nested::described(observed) };
        let replicas = nested::int64(observed, &["spec", "replicas"]).ok().flatten().ok_or_else(missing)?;
        nested::set(&mut desired, &["spec", "replicas"], replicas.into())?;
    }
    Ok(desired)
}

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let deployment = Typed::parts_of_object("Deployment", object, HEALTH).map_err(NativeError::object("Deployment"))?;
    let updated = deployment.number("/status/updatedReplicas");
    Ok(deployment.number("/status/observedGeneration") == deployment.number("/metadata/generation")
        && deployment.optional_number("/spec/replicas").is_none_or(|replicas| updated >= replicas)
        && deployment.number("/status/availableReplicas") >= updated)
}

pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("Deployment", object)
}
