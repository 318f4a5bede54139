//! What one cluster reported, with a typed status: for functions that aggregate.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// [`AggregatedStatusItem`](crate::operation::AggregatedStatusItem) with the status read as `S`.
///
/// An item whose status is not an `S` is an error of the call, which names the item.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus<S = Value> {
    /// The name of the cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// The result of `InterpretStatus` for the object there; `None` until it is known.
    pub status: Option<S>,
    /// Whether the object was written to the cluster.
    #[serde(default)]
    pub applied: bool,
    /// Why it was not.
    #[serde(default)]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`; empty if health was not interpreted.
    #[serde(default)]
    pub health: String,
}

/// What an item can be read as: [`ClusterStatus`], [`AggregatedStatusItem`](crate::operation::AggregatedStatusItem), or any
/// type that deserialises from it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be read from what a cluster reported",
    label = "does not implement `Deserialize`",
    note = "help: write `fn name(object: &mut Kind, items: &[AggregatedStatusItem]) -> Result<()>`, or `&[ClusterStatus<KindStatus>]`",
    note = "code: K0056"
)]
pub trait StatusItem: DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<I: DeserializeOwned + Send + Sync + 'static> StatusItem for I {}
