//! The kind `RestartPolicy`: pods from a template, and the `ConfigMap` whose changes restart them.

use kctl::prelude::*;

/// Pods that use a `ConfigMap` and are replaced when its data changes.
#[resource(
    group = "apps.example.com",
    version = "v1",
    kind = "RestartPolicy",
    plural = "restartpolicies",
    shortname = "rp",
    namespaced,
    status = "RestartPolicyStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.ready"),
    printcolumn(name = "Updated", type_ = "integer", json_path = ".status.updated"),
    printcolumn(name = "Hash", type_ = "string", json_path = ".status.configHash")
)]
pub(crate) struct RestartPolicySpec {
    /// The `ConfigMap` in the same namespace: its entries become environment variables of all containers.
    pub config_map_name: String,
    /// Number of desired pods.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The template of the pods.
    pub template: PodTemplateSpec,
}

/// Observed state of a policy.
#[schema]
#[derive(Default)]
pub(crate) struct RestartPolicyStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods that are not being deleted.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that were made with the newest data.
    pub updated: i32,
    /// The newest hash of the data; the last one that was known while the `ConfigMap` is missing.
    pub config_hash: Option<String>,
    /// The hash that was last sent to the registry.
    pub registered_hash: Option<String>,
    /// `ConfigFound`, `Ready` and `Registered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
