//! The rules of `v1 PersistentVolume`. `InterpretStatus` returns the whole status.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `Retain` | `spec.claimRef` of the member cluster | `retain.go`, `retainPersistentVolumeFields` |
//! | `AggregateStatus` | the worst phase | `aggregatestatus.go`, `aggregatePersistentVolumeStatus` |

use serde_json::Value;

use super::{Items, NativeError, Result, nested, workload::member_statuses};
use crate::typed::Typed;

/// Copies `spec.claimRef` from the observed object, if it exists. The volume controller of the
/// cluster binds the volume by that field.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if let Some(claim) = nested::field(observed, &["spec", "claimRef"])? {
        nested::set(&mut desired, &["spec", "claimRef"], claim.clone())?;
    }
    Ok(desired)
}

/// Replaces the status with the worst phase of all clusters.
///
/// From worst to best: `Failed`, `Pending`, `Available`, `Bound`, `Released`. A cluster that has
/// not reported counts as `Pending`. Without any item the phase is empty.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let what = "PersistentVolume";
    let volume = Typed::from_object(what, &object).map_err(NativeError::object(what))?;
    let items = items.unwrap_or_default();
    let mut phases = Vec::new();
    for member in member_statuses("PersistentVolumeStatus", items) {
        let (_cluster, member) = member?;
        phases.push(member.text("/phase").to_owned());
    }
    if phases.len() < items.len() {
        phases.push("Pending".to_owned());
    }
    let order = ["Failed", "Pending", "Available", "Bound", "Released"];
    let worst = order.into_iter().find(|phase| phases.iter().any(|present| present == phase));
    let mut status = Typed::zero("PersistentVolumeStatus");
    *status.at_mut("/phase") = worst.unwrap_or_default().into();
    Ok(volume.with_status(status, object))
}
