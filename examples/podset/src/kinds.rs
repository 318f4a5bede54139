//! The kind `PodSet`.

use kctl::prelude::*;

/// A set of pods that one template describes.
#[resource(
    group = "apps.example.com",
    version = "v1",
    kind = "PodSet",
    namespaced,
    status = "PodSetStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(json_path = ".spec.replicas", name = "Desired", type_ = "integer"),
    printcolumn(json_path = ".status.readyReplicas", name = "Ready", type_ = "integer"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
pub struct PodSetSpec {
    /// Number of desired pods.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Selects the pods of the set. The labels of the template must match it.
    pub selector: LabelSelector,
    /// The template of the pods.
    pub template: PodTemplateSpec,
}

/// Observed state of a set.
#[schema]
#[derive(Default)]
pub struct PodSetStatus {
    /// Pods that are not being deleted.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: i32,
    /// The generation of the spec that this status is about.
    pub observed_generation: i64,
    /// The selector as text, for the scale subresource.
    pub selector: String,
    /// `ReplicaFailure` when a pod could not be created or deleted.
    pub conditions: Vec<Condition>,
}
