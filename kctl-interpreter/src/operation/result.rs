//! Outputs of operations, in the JSON of Karmada's `config.karmada.io/v1alpha1` and `work.karmada.io/v1alpha2`.
//!
//! Optional fields are left out of the JSON when they are empty, as Go's `omitempty` does.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The number of replicas that an object wants, and the requirements of one replica: the output of `InterpretReplica`.
///
/// ```
/// use kctl_interpreter::operation::{ReplicaRequirements, Replicas};
/// use serde_json::json;
///
/// let requirements = ReplicaRequirements {
///     resource_request: [("cpu".to_owned(), "500m".to_owned())].into(),
///     ..ReplicaRequirements::default()
/// };
/// let replicas = Replicas { replicas: 3, requirements: Some(requirements) };
/// assert_eq!(
///     serde_json::to_value(&replicas)?,
///     json!({ "replica": 3, "requires": { "resourceRequest": { "cpu": "500m" } } })
/// );
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replicas {
    /// The number of replicas over all clusters.
    #[serde(rename = "replica")]
    pub replicas: i32,
    /// The requirements of one replica. With `None` they are unknown, and the scheduler requests no resources.
    #[serde(rename = "requires")]
    pub requirements: Option<ReplicaRequirements>,
}

/// The requirements of one replica, from which Karmada's scheduler estimates how many replicas fit into a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// The nodes on which the replica can run; `None` for any node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<NodeClaim>,
    /// Quantities by resource name, such as `cpu` and `500m`: the requests of all containers of one replica.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_request: BTreeMap<String, String>,
    /// The namespace whose `ResourceQuota` applies; empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the `PriorityClass` of the Pods, whose `ResourceQuota` applies; empty for the default.
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
    /// Labels that a node must have, as `spec.nodeSelector` of a Pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The tolerations of the Pods, as `spec.tolerations` of a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Value>,
}

/// One pod template of an object that has several, such as the workers of a `PyTorchJob`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// The name of the component, unique in its object.
    #[serde(default)]
    pub name: String,
    /// The number of replicas.
    #[serde(default)]
    pub replicas: i32,
    /// The requirements of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// A reference to an object, or to all objects with some labels, that must follow another object to its clusters.
///
/// [`dependency::verify`](crate::dependency::verify) checks that a reference is complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependentReference {
    /// `apiVersion` of the referenced object, such as `v1`.
    #[serde(default, deserialize_with = "or_null")]
    pub api_version: String,
    /// `kind` of the referenced object, such as `ConfigMap`.
    #[serde(default, deserialize_with = "or_null")]
    pub kind: String,
    /// The namespace of the referenced object; empty for a cluster-scoped kind.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_null")]
    pub namespace: String,
    /// The name of the referenced object. With a name the selector is ignored.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_null")]
    pub name: String,
    /// A `LabelSelector` for all objects that must follow; used if `name` is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Value>,
}

/// The status of an object in one member cluster, as `status.aggregatedStatus` of a `ResourceBinding` has it.
///
/// ```
/// use kctl_interpreter::operation::AggregatedStatusItem;
/// use serde_json::json;
///
/// let item: AggregatedStatusItem = serde_json::from_value(json!({ "clusterName": "member1", "status": { "replicas": 2 } }))?;
/// assert_eq!(item.status.unwrap_or_default()["replicas"], 2);
/// assert!(!item.applied);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// The name of the member cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// The result of `InterpretStatus` for the object there; `None` until it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// `true` if the object was written to the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// The error if the object could not be written to the cluster; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`; empty if health was not interpreted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
}

/// Reads null as the default, as Go does: it writes a nil slice as null, and null leaves a field of any type unchanged.
pub(crate) fn or_null<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
