//! `PersistentVolumeClaimResize`: a claim may grow only if it is bound and its `StorageClass` allows it.
//!
//! Upstream: `persistentVolumeClaimResize.Validate` in
//! `plugin/pkg/admission/storage/persistentvolume/resize/admission.go`.

use serde_json::Value;

use super::rejection;
use crate::{
    admission::Attributes,
    field_errors::text,
    kinds::{core::persistent_volume_claim::class_of_claim, storage::storage_class},
    quantity,
    status::StatusError,
    store::Store,
};

/// Checks that a bound `PersistentVolumeClaim` may be expanded: its `StorageClass` has to allow it. A smaller request
/// is left to validation. An update that changes the class at the same time may not expand the claim.
pub(super) fn validate(store: &Store, attributes: &Attributes<'_>, new: &Value) -> Result<(), StatusError> {
    let is_whole = attributes.info.subresource.is_main();
    let Some(old) = attributes.old.as_deref().filter(|_| is_whole) else { return Ok(()) };
    let request = |claim: &Value| quantity::amount(text(&claim["spec"]["resources"]["requests"]["storage"]));
    let size = |claim: &Value| request(claim).unwrap_or_default();
    if size(new) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err(rejection(attributes, "Only bound persistent volume claims can be expanded"));
    }
    let (was, class) = (class_of_claim(old), class_of_claim(new));
    let found = store.object(&storage_class::KIND, "", class).filter(|_| was == class);
    if found.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    Err(rejection(attributes, "the storage class of the claim must allow its expansion"))
}
