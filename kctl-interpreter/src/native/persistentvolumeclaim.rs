//! `PersistentVolumeClaim`s.

use serde_json::Value;

use super::{Items, NativeError, Result, nested, workload::members};
use crate::typed::Typed;

fn claim(object: &Value) -> Result<Typed> {
    let what = "PersistentVolumeClaim";
    Typed::from_object(what, object).map_err(NativeError::object(what))
}

/// Keeps the volume that the cluster bound.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if let Some(name) = nested::string(observed, &["spec", "volumeName"])?.filter(|name| !name.is_empty()) {
        nested::set(&mut desired, &["spec", "volumeName"], name.into())?;
    }
    Ok(desired)
}

/// One lost claim is lost; otherwise the last claim that is not bound counts.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut claim = claim(&object)?;
    let mut phase = "Bound".to_owned();
    for member in members("PersistentVolumeClaimStatus", items.unwrap_or_default()) {
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
    if claim.has("/status", &status) {
        return Ok(object);
    }
    *claim.at_mut("/status") = status.into_value();
    Ok(claim.into_object())
}

pub(super) fn healthy(object: &Value) -> Result<bool> {
    Ok(claim(object)?.text("/status/phase") == "Bound")
}
