//! Cells that several workload kinds share.
//!
//! The columns Containers, Images and Selector have priority 1: kubectl shows them with `-o wide`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::age,
    fields::{int, list, name, text, value_at},
};

/// Returns the names and the images of the containers of a pod template.
///
/// Both are joined by commas in the order of the containers. Init containers are not shown.
pub(crate) fn containers(template: &Value) -> [Value; 2] {
    ["/name", "/image"].map(|pointer| {
        let parts: Vec<_> =
            list(template, "/spec/containers").iter().map(|container| text(container, pointer)).collect();
        json!(parts.join(","))
    })
}

/// Returns the cells of a `ReplicaSet` or `ReplicationController`.
///
/// `selector` is the printed selector, because the two kinds have different types of selectors.
pub(crate) fn replicas(object: &Value, now: Timestamp, selector: &str) -> Vec<Value> {
    let [names, images] = containers(value_at(object, "/spec/template"));
    vec![
        json!(name(object)),
        json!(desired(object)),
        json!(int(object, "/status/replicas")),
        json!(int(object, "/status/readyReplicas")),
        json!(age(object, now)),
        names,
        images,
        json!(selector),
    ]
}

/// Returns the cell `READY`, such as `2/3`.
///
/// The first number may be larger, for example while the object is scaled down.
pub(crate) fn ready_of_desired(object: &Value) -> String {
    format!("{}/{}", int(object, "/status/readyReplicas"), desired(object))
}

/// Returns `spec.replicas`, whose default is 1 for every kind.
fn desired(object: &Value) -> i64 {
    value_at(object, "/spec/replicas").as_i64().unwrap_or(1)
}
