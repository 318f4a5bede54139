//! `StorageObjectInUseProtection`: adds a finalizer to new volumes, claims and `VolumeAttributesClasses`.
//!
//! Upstream: `storageProtectionPlugin.Admit` in
//! `plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go`.

use super::Mutation;
use crate::{json_path::push_once, status::StatusError};

/// Adds the finalizer of the kind to a new object. A finalizer that was sent is not added twice.
pub(super) fn admit(mutation: &mut Mutation<'_>, finalizer: &str) -> Result<(), StatusError> {
    if mutation.creates() {
        push_once(&mut mutation.object["metadata"]["finalizers"], finalizer.into());
    }
    Ok(())
}
