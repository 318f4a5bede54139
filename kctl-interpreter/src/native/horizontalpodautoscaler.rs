//! The rules of `autoscaling/v2 HorizontalPodAutoscaler`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretStatus` | `currentReplicas` and `desiredReplicas` | `reflectstatus.go`, `reflectHorizontalPodAutoscalerStatus` |
//! | `AggregateStatus` | sums of both | `aggregatestatus.go`, `aggregateHorizontalPodAutoscalerStatus` |

use serde_json::Value;

use super::{
    Items, NativeError, Result,
    workload::{int32, member_statuses, status_fields},
};
use crate::typed::Typed;

/// The numbers of the status that are collected and summed, as JSON pointers.
const COUNTERS: [&str; 2] = ["/currentReplicas", "/desiredReplicas"];

/// Replaces the status with the sums of `currentReplicas` and `desiredReplicas` over the clusters
/// that reported. Conditions and metrics of the previous status are dropped.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let what = "HorizontalPodAutoscaler";
    let autoscaler = Typed::from_object(what, &object).map_err(NativeError::object(what))?;
    let mut sums = [0i64; COUNTERS.len()];
    for member in member_statuses("HorizontalPodAutoscalerStatus", items.unwrap_or_default()) {
        let (_cluster, member) = member?;
        for (sum, pointer) in sums.iter_mut().zip(COUNTERS) {
            *sum += member.number(pointer);
        }
    }
    let mut status = Typed::zero("HorizontalPodAutoscalerStatus");
    for (sum, pointer) in sums.into_iter().zip(COUNTERS) {
        *status.at_mut(pointer) = int32(sum);
    }
    Ok(autoscaler.with_status(status, object))
}

/// Returns the two numbers of the status; `null` for an object without a status.
pub(super) fn status(object: &Value) -> Result<Value> {
    status_fields("HorizontalPodAutoscalerStatus", COUNTERS, object)
}
