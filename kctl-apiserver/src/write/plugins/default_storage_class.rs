//! `DefaultStorageClass`: a new `PersistentVolumeClaim` without a class gets the default `StorageClass`.
//!
//! Upstream: `claimDefaulterPlugin.Admit` in `plugin/pkg/admission/storage/storageclass/setdefault/admission.go`.

use super::{Mutation, default_class::default_class};
use crate::{
    kinds::{
        core::persistent_volume_claim::{self, CLASS_OF_CLAIM},
        storage::storage_class,
    },
    state::State,
    status::StatusError,
};

/// Annotations that mark the default `StorageClass`.
///
/// The beta annotation is still accepted.
const IS_DEFAULT: &[&str] =
    &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Sets the class of a new `PersistentVolumeClaim` without one. The empty string is a class.
///
/// The deprecated annotation counts as a class.
pub(super) fn admit(state: &mut State, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    let claim = &*mutation.object;
    let has_class =
        claim["metadata"]["annotations"].get(CLASS_OF_CLAIM).is_some() || !claim["spec"]["storageClassName"].is_null();
    if !mutation.creates(&persistent_volume_claim::KIND) || has_class {
        return Ok(());
    }
    if let Some(name) = default_class(state, &storage_class::KIND, IS_DEFAULT) {
        mutation.object["spec"]["storageClassName"] = name;
    }
    Ok(())
}
