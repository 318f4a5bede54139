//! `PodDisruptionBudget`s.

use serde_json::{Map, Value};

use super::{
    Items, NativeError, Result, nested,
    workload::{int32, members},
};
use crate::typed::Typed;

const COUNTERS: [&str; 4] = ["/currentHealthy", "/desiredHealthy", "/expectedPods", "/disruptionsAllowed"];

fn budget(object: &Value) -> Result<Typed> {
    let what = "PodDisruptionBudget";
    Typed::from_object(what, object).map_err(NativeError::object(what))
}

/// Adds the counters up. A disrupted pod is named with its cluster: names repeat.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut budget = budget(&object)?;
    let mut sums = [0i64; COUNTERS.len()];
    let mut disrupted = Map::new();
    for member in members("PodDisruptionBudgetStatus", items.unwrap_or_default()) {
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
    if budget.has("/status", &status) {
        return Ok(object);
    }
    *budget.at_mut("/status") = status.into_value();
    Ok(budget.into_object())
}

pub(super) fn status(object: &Value) -> Result<Value> {
    let Some(status) = nested::map(object, &["status"])? else { return Ok(Value::Null) };
    let what = "PodDisruptionBudgetStatus";
    let status = Typed::from_object(what, &Value::Object(status.clone())).map_err(NativeError::object(what))?;
    let mut collected = Typed::zero(what);
    for pointer in COUNTERS.into_iter().chain(["/disruptedPods"]) {
        *collected.at_mut(pointer) = status.at(pointer).clone();
    }
    Ok(collected.into_object())
}

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let budget = budget(object)?;
    Ok(budget.number("/status/currentHealthy") >= budget.number("/status/desiredHealthy"))
}
