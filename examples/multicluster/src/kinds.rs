//! The kinds: the policies of users, and the objects that controllers exchange.

use kctl::prelude::*;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// A member cluster. Its name is the one that the program knows it by.
#[resource(
    group = "fleet.example.com",
    version = "v1alpha1",
    kind = "Cluster",
    // `Cluster` is a trait of kctl.
    root = "MemberCluster",
    status = "ClusterStatus",
    printcolumn(json_path = ".status.ready", name = "Ready", type_ = "boolean")
)]
pub struct ClusterSpec {
    /// Maximum number of replicas that are divided by room; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub capacity: Option<i32>,
}

/// Observed state of the cluster.
#[schema]
#[derive(Default)]
pub struct ClusterStatus {
    /// The cluster answered the last probe.
    pub ready: bool,
    /// The error of the last probe.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Selects objects and distributes them over clusters.
#[resource(
    group = "fleet.example.com",
    version = "v1alpha1",
    kind = "PropagationPolicy",
    namespaced,
    status = "PropagationPolicyStatus",
    printcolumn(json_path = ".status.selected", name = "Selected", type_ = "integer"),
    printcolumn(json_path = ".status.message", name = "Message", type_ = "string")
)]
pub struct PropagationPolicySpec {
    /// Selects objects of the namespace. An object that several policies select belongs to the first by name.
    pub resource_selectors: Vec<ResourceSelector>,
    /// ConfigMaps and Secrets that an object needs are on the same clusters.
    #[serde(default)]
    pub propagate_deps: bool,
    /// The clusters of the selected objects, and the division of their replicas.
    #[serde(default)]
    pub placement: Placement,
}

/// Observed state of the policy.
#[schema]
#[derive(Default)]
pub struct PropagationPolicyStatus {
    /// Number of objects that the policy selects.
    pub selected: i64,
    /// Kinds that the policy cannot select, with reasons.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Objects by kind, and by name or labels where these are given.
#[schema]
pub struct ResourceSelector {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// The kind, such as `Deployment`: any namespaced kind of the control plane, even one that is installed later.
    pub kind: String,
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Labels that the object has.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
}

/// The clusters of objects, and the division of their replicas.
#[schema]
#[derive(Default, PartialEq)]
pub struct Placement {
    /// The clusters; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Division of the replicas among the clusters.
    #[serde(default)]
    pub replicas: Division,
    /// For `Divided`: the rule that divides replicas.
    #[serde(default)]
    pub divided_by: DividedBy,
    /// For `Divided` by `Weight`: the weights of clusters. Without any they weigh the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<Weight>,
}

/// Division of the replicas among the clusters.
#[schema]
#[derive(Default, PartialEq)]
pub enum Division {
    /// Every cluster has all of them.
    #[default]
    Duplicated,
    /// They are divided.
    Divided,
}

/// The rule that divides replicas. With `Room` and `FewClusters`, a change of their number divides only the difference.
#[schema]
#[derive(Default, PartialEq)]
pub enum DividedBy {
    /// The weights of the placement.
    #[default]
    Weight,
    /// In the proportion of the room that clusters have.
    Room,
    /// As few clusters as are needed: first those that already have replicas, then those with the most room.
    FewClusters,
}

/// The weight of a cluster.
#[schema]
#[derive(PartialEq)]
pub struct Weight {
    /// Its name.
    pub cluster: String,
    /// Share of the replicas, relative to other clusters; 0 counts as no weight.
    #[schemars(range(min = 0))]
    pub weight: i64,
}

/// One object and its clusters.
#[resource(
    group = "fleet.example.com",
    version = "v1alpha1",
    kind = "ResourceBinding",
    namespaced,
    status = "ResourceBindingStatus"
)]
pub struct ResourceBindingSpec {
    /// The object, in the namespace of the binding.
    pub resource: ResourceRef,
    /// Number of desired replicas; absent for kinds without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The policy that selects the object; absent if it only follows objects that need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The placement of its policy; absent if the object only follows others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The bindings of the objects that need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<RequiredBy>,
    /// The clusters that the scheduler chose, each with its replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<BindingCluster>,
}

/// An object of the control plane.
#[schema]
pub struct ResourceRef {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// A binding whose object needs the one of this binding, and where it is.
#[schema]
pub struct RequiredBy {
    /// The name of the binding.
    pub binding: String,
    /// Its clusters.
    #[serde(default)]
    pub clusters: Vec<String>,
}

/// A cluster that has an object, with the number of its replicas there.
#[schema]
#[derive(PartialEq)]
pub struct BindingCluster {
    /// The name.
    pub name: String,
    /// Number of replicas; absent for kinds without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// Status of the object on the clusters.
#[schema]
#[derive(Default)]
pub struct ResourceBindingStatus {
    /// One item per cluster.
    #[serde(default)]
    pub aggregated_status: Vec<StatusItem>,
}

/// Status on one cluster, in the form of Karmada's `AggregatedStatusItem`.
#[schema]
#[derive(Default)]
pub struct StatusItem {
    /// The name of the cluster.
    pub cluster_name: String,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub status: Option<Value>,
    /// The cluster has the object as specified.
    #[serde(default)]
    pub applied: bool,
    /// The error, if the object could not be applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
}

/// One object for one cluster.
#[resource(
    group = "fleet.example.com",
    version = "v1alpha1",
    kind = "Work",
    namespaced,
    status = "WorkStatus",
    printcolumn(json_path = ".spec.cluster", name = "Cluster", type_ = "string"),
    printcolumn(json_path = ".status.applied", name = "Applied", type_ = "boolean"),
    printcolumn(json_path = ".status.health", name = "Health", type_ = "string")
)]
pub struct WorkSpec {
    /// The name of the cluster.
    pub cluster: String,
    /// The object to apply to the cluster.
    #[schemars(schema_with = "any_object")]
    pub manifest: Value,
}

/// Outcome of applying the object to the cluster.
#[schema]
#[derive(Default)]
pub struct WorkStatus {
    /// The cluster has the object as specified.
    #[serde(default)]
    pub applied: bool,
    /// The error, if the object could not be applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// The part of its status there that `InterpretStatus` selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub status: Option<Value>,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
}

/// Changes objects for some clusters.
#[resource(
    group = "fleet.example.com",
    version = "v1alpha1",
    kind = "OverridePolicy",
    namespaced,
    status = "OverridePolicyStatus",
    printcolumn(json_path = ".status.message", name = "Message", type_ = "string")
)]
pub struct OverridePolicySpec {
    /// The objects that the policy changes.
    pub resource_selectors: Vec<ResourceSelector>,
    /// The changes, each with its clusters.
    pub rules: Vec<OverrideRule>,
}

/// Observed state of the policy.
#[schema]
#[derive(Default)]
pub struct OverridePolicyStatus {
    /// The reason why the policy cannot be applied. Until it is corrected, the selected objects remain unchanged on the member clusters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Changes for some clusters.
#[schema]
pub struct OverrideRule {
    /// The clusters; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// A JSON patch.
    pub patch: Vec<PatchOperation>,
}

/// One step of a JSON patch.
#[schema]
pub struct PatchOperation {
    /// The operation.
    pub op: PatchOp,
    /// Path of the field, such as `/spec/template/spec/containers/0/image`.
    pub path: String,
    /// The new value; absent for `remove`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub value: Option<Value>,
}

/// Operation of a JSON patch.
#[schema]
#[serde(rename_all = "lowercase")]
pub enum PatchOp {
    /// Adds a value, or replaces the existing one.
    Add,
    /// Replaces the existing value.
    Replace,
    /// Removes the existing value.
    Remove,
}

/// Returns the schema of an object with any fields.
fn any_object(_schemas: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of any value.
fn anything(_schemas: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
