//! Cells that several workload kinds share.
//!
//! The columns Containers, Images and Selector have priority 1: kubectl shows them with `-o wide`.

use serde_json::Value;

use super::fields::{int, value_at};
use crate::registry::kind::Cell;

/// The cells of a `ReplicaSet` or `ReplicationController`.
pub(crate) const REPLICAS: [Cell; 8] = [
    Cell::Name,
    Cell::Computed(|object, _| desired_replicas(object).into()),
    Cell::Int("/status/replicas"),
    Cell::Int("/status/readyReplicas"),
    Cell::Age,
    Cell::Containers("/spec/template"),
    Cell::Images("/spec/template"),
    Cell::Labels("/spec/selector"),
];

/// Returns the cell `READY`, such as `2/3`.
pub(crate) fn ready_of_desired(object: &Value) -> String {
    format!("{}/{}", int(object, "/status/readyReplicas"), desired_replicas(object))
}

/// Returns `spec.replicas`, whose default is 1 for every kind.
fn desired_replicas(object: &Value) -> i64 {
    value_at(object, "/spec/replicas").as_i64().unwrap_or(1)
}
