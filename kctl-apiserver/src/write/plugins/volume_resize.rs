//! Admission plugin `PersistentVolumeClaimResize`.

use serde_json::Value;

use super::Forbid;
use crate::{
    field_errors::text,
    kinds::{core::persistent_volume_claim::class_of_claim, storage::storage_class},
    quantity,
    state::State,
    status::StatusError,
};

/// Checks that a bound `PersistentVolumeClaim` may be expanded: its `StorageClass` has to allow it
/// (`PersistentVolumeClaimResize`).
///
/// A smaller request is left to validation. An update that changes the class at the same time may not expand the claim.
pub(super) fn may_grow(state: &State, forbid: &Forbid<'_>, old: &Value, new: &Value) -> Result<(), StatusError> {
    let size = |claim: &Value| {
        let size = quantity::amount(text(&claim["spec"]["resources"]["requests"]["storage"]));
        size.unwrap_or_default()
    };
    if size(new) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return forbid.reject("Only bound persistent volume claims can be expanded");
    }
    let (was, class) = (class_of_claim(old), class_of_claim(new));
    let found = state.object(&storage_class::KIND, "", class).filter(|_| was == class);
    if found.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    forbid.reject(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
         support resize",
    )
}
