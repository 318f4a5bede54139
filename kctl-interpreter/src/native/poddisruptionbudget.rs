//! The rules of `policy/v1 PodDisruptionBudget`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretStatus` | four counters and `disruptedPods` | `reflectstatus.go`, `reflectPodDisruptionBudgetStatus` |
//! | `AggregateStatus` | sums, and the disrupted Pods of all clusters | `aggregatestatus.go`, `aggregatePodDisruptionBudgetStatus` |
//! | `InterpretHealth` | `true` if enough Pods are healthy | `healthy.go`, `interpretPodDisruptionBudgetHealth` |

use serde_json::{Map, Value};

use super::{
    Items, NativeError, Result,
    workload::{int32, member_statuses, status_fields},
};
use crate::typed::Typed;

/// The numbers of the status that are collected and summed, as JSON pointers.
const COUNTERS: [&str; 4] = ["/currentHealthy", "/desiredHealthy", "/expectedPods", "/disruptionsAllowed"];

/// Converts an object to the Go type `PodDisruptionBudget`.
fn budget(object: &Value) -> Result<Typed> {
    let what = "PodDisruptionBudget";
    Typed::from_object(what, object).map_err(NativeError::object(what))
}

/// Replaces the status with the sums of the counters and the joined `disruptedPods`.
///
/// A disrupted Pod is listed as `cluster/pod`, because Pods of different clusters can have the same
/// name.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let budget = budget(&object)?;
    let mut sums = [0i64; COUNTERS.len()];
    let mut disrupted = Map::new();
    for member in member_statuses("PodDisruptionBudgetStatus", items.unwrap_or_default()) {
        let (cluster, member) = member?;
        for (sum, pointer) in sums.iter_mut().zip(COUNTERS) {
            *sum += member.number(pointer);
        }
        for (pod, time) in member.at("/disruptedPods").as_object().into_iter().flatten() {
            disrupted.insert(format!("{cluster}/{pod}"), time.clone());
        }
    }
    let mut status = Typed::zero("PodDisruptionBudgetStatus");
    *status.at_mut("/disruptedPods") = disrupted.into();
    for (sum, pointer) in sums.into_iter().zip(COUNTERS) {
        *status.at_mut(pointer) = int32(sum);
    }
    Ok(budget.with_status(status, object))
}

/// Returns the counters and `disruptedPods` of the status; `null` for an object without a status.
pub(super) fn status(object: &Value) -> Result<Value> {
    status_fields("PodDisruptionBudgetStatus", COUNTERS.into_iter().chain(["/disruptedPods"]), object)
}

/// Returns `true` if `status.currentHealthy` is at least `status.desiredHealthy`.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let budget = budget(object)?;
    Ok(budget.number("/status/currentHealthy") >= budget.number("/status/desiredHealthy"))
}
