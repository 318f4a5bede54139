//! The statuses of member clusters with their type, for functions that aggregate.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The status of an object in one member cluster: an
/// [`AggregatedStatusItem`](crate::operation::AggregatedStatusItem) with the status read as `S`.
///
/// Use it as the item of a function for `AggregateStatus`. If the status of an item is not an `S`,
/// the call fails with an error that names the cluster.
///
/// ```
/// use k8s_openapi::api::apps::v1::DeploymentStatus;
/// use kctl_interpreter::function::ClusterStatus;
/// use serde_json::json;
///
/// let item = json!({ "clusterName": "member1", "status": { "readyReplicas": 2 }, "applied": true, "health": "Healthy" });
/// let item: ClusterStatus<DeploymentStatus> = serde_json::from_value(item)?;
/// assert_eq!((item.cluster_name.as_str(), item.health.as_str()), ("member1", "Healthy"));
/// assert_eq!(item.status.and_then(|status| status.ready_replicas), Some(2));
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus<S = Value> {
    /// The name of the member cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// The answer of `InterpretStatus` for the object there; `None` until the cluster has reported.
    pub status: Option<S>,
    /// `true` if the object was written to the cluster.
    #[serde(default)]
    pub applied: bool,
    /// The error if the object could not be written; empty otherwise.
    #[serde(default)]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`; empty if health was not interpreted.
    #[serde(default)]
    pub health: String,
}

/// A type that an item of `AggregateStatus` can be read as: [`ClusterStatus`],
/// [`AggregatedStatusItem`](crate::operation::AggregatedStatusItem), or your own type that
/// implements `Deserialize`.
///
/// ```
/// use kctl_interpreter::function::{ClusterStatus, StatusItem};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct NameOnly {
///     cluster_name: String,
/// }
///
/// fn is_item<I: StatusItem>() {}
/// is_item::<NameOnly>();
/// is_item::<ClusterStatus>();
/// # let _ = |item: NameOnly| item.cluster_name;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be read from what a cluster reported",
    label = "does not implement `Deserialize`",
    note = "help: write `fn name(object: &mut Kind, items: &[AggregatedStatusItem]) -> Result<()>`, or `&[ClusterStatus<KindStatus>]`",
    note = "code: K0056"
)]
pub trait StatusItem: DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<I: DeserializeOwned + Send + Sync + 'static> StatusItem for I {}
