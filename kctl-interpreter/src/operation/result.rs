//! What operations answer with, in the JSON of Karmada's `config.karmada.io/v1alpha1` and `work.karmada.io/v1alpha2`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many replicas an object wants, and what each of them needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replicas {
    /// The number of replicas.
    #[serde(rename = "replica")]
    pub replicas: i32,
    /// The requirements of one replica. With `None` they are unknown, and the scheduler requests no resources.
    #[serde(rename = "requires")]
    pub requirements: Option<ReplicaRequirements>,
}

/// The requirements of one replica on its cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// The node requirements of the replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<NodeClaim>,
    /// Quantities by the name of the resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_request: BTreeMap<String, String>,
    /// The namespace whose quota counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The priority class whose quota counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority_class_name: String,
}

/// The node requirements of a replica: the hard scheduling rules of its Pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaim {
    /// The `NodeSelector` of the required node affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_node_affinity: Option<Value>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The pods' tolerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Value>,
}

/// One of the pod templates of an object that has several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// The name, unique in its object.
    #[serde(default)]
    pub name: String,
    /// The number of replicas.
    #[serde(default)]
    pub replicas: i32,
    /// The requirements of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// An object, or several by their labels, that must go where the object goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependentReference {
    /// Such as `v1`.
    #[serde(default)]
    pub api_version: String,
    /// Such as `ConfigMap`.
    #[serde(default)]
    pub kind: String,
    /// Empty for a kind without namespaces.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name; it wins over the selector.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A `LabelSelector`, if `name` is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Value>,
}

/// The status of an object that one cluster reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// The name of the cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// The result of `InterpretStatus` for the object there; `None` until it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Whether the object was written to the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`; empty if health was not interpreted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
}
