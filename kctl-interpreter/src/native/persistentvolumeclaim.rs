//! The rules of `v1 PersistentVolumeClaim`. `InterpretStatus` returns the whole status.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `Retain` | `spec.volumeName` of the member cluster | `retain.go`, `retainPersistentVolumeClaimFields` |
//! | `AggregateStatus` | one phase | `aggregatestatus.go`, `aggregatePersistentVolumeClaimStatus` |
//! | `InterpretHealth` | `true` if `status.phase` is `Bound` | `healthy.go`, `interpretPersistentVolumeClaimHealth` |

use serde_json::Value;

use super::{Items, NativeError, Result, nested, workload::member_statuses};
use crate::typed::Typed;

/// Converts an object to the Go type `PersistentVolumeClaim`.
fn claim(object: &Value) -> Result<Typed> {
    let what = "PersistentVolumeClaim";
    Typed::from_object(what, object).map_err(NativeError::object(what))
}

/// Copies `spec.volumeName` from the observed object, if it is not empty. The volume controller of
/// the cluster binds the claim by that field, and it is immutable from then on.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if let Some(name) = nested::string(observed, &["spec", "volumeName"])?.filter(|name| !name.is_empty()) {
        nested::set(&mut desired, &["spec", "volumeName"], name.into())?;
    }
    Ok(desired)
}

/// Replaces the status with one phase for all clusters.
///
/// `Lost` wins as soon as one cluster reports it. Otherwise the last phase other than `Bound`
/// counts, and `Bound` if all clusters report that. Clusters that have not reported are ignored,
/// and without any report the phase is `Bound`.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let claim = claim(&object)?;
    let mut phase = "Bound".to_owned();
    for member in member_statuses("PersistentVolumeClaimStatus", items.unwrap_or_default()) {
        let (_cluster, member) = member?;
        match member.text("/phase") {
            "Lost" => {
                "Lost".clone_into(&mut phase);
                break;
            }
            "Bound" => {}
            other => other.clone_into(&mut phase),
        }
    }
    let mut status = Typed::zero("PersistentVolumeClaimStatus");
    *status.at_mut("/phase") = phase.into();
    Ok(claim.with_status(status, object))
}

/// Returns `true` if `status.phase` is `Bound`.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    Ok(claim(object)?.text("/status/phase") == "Bound")
}
