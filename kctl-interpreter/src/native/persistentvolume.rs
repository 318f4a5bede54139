//! `PersistentVolume`s.

use serde_json::Value;

use super::{Items, NativeError, Result, nested, workload::members};
use crate::typed::Typed;

/// Keeps the claim that the cluster bound.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if let Some(claim) = nested::field(observed, &["spec", "claimRef"])? {
        nested::set(&mut desired, &["spec", "claimRef"], claim.clone())?;
    }
    Ok(desired)
}

/// Takes the worst phase. A cluster that has not reported counts as pending.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let what = "PersistentVolume";
    let mut volume = Typed::from_object(what, &object).map_err(NativeError::object(what))?;
    let items = items.unwrap_or_default();
    let mut phases = Vec::new();
    for member in members("PersistentVolumeStatus", items) {
        let (_cluster, member) = member?;
        phases.push(member.text("/phase").to_owned());
    }
    if phases.len() < items.len() {
        phases.push("Pending".to_owned());
    }
    let order = ["Failed", "Pending", "Available", "Bound", "Released"];
    let worst = order.into_iter().find(|phase| phases.iter().any(|one| one == phase));
    let mut status = Typed::zero("PersistentVolumeStatus");
    *status.at_mut("/phase") = worst.unwrap_or_default().into();
    if volume.has("/status", &status) {
        return Ok(object);
    }
    *volume.at_mut("/status") = status.into_value();
    Ok(volume.into_object())
}
