//! `StorageObjectInUseProtection`: adds a finalizer to new volumes, claims and `VolumeAttributesClasses`.
//!
//! Upstream: `storageProtectionPlugin.Admit` in
//! `plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go`.

use super::Mutation;
use crate::{
    json_path::push_once,
    kinds::{
        core::{persistent_volume, persistent_volume_claim},
        storage::volume_attributes_class,
    },
    registry::kind::Kind,
    state::State,
    status::StatusError,
};

/// The protected kinds with their finalizers. A controller removes the finalizer when the object is no longer in use.
static FINALIZERS: [(&Kind, &str); 3] = [
    (&persistent_volume_claim::KIND, "kubernetes.io/pvc-protection"),
    (&persistent_volume::KIND, "kubernetes.io/pv-protection"),
    (&volume_attributes_class::KIND, "kubernetes.io/vac-protection"),
];

/// Adds the finalizer of the kind to a new object. A finalizer that was sent is not added twice.
pub(super) fn admit(_: &mut State, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    let Some((_, finalizer)) = FINALIZERS.iter().find(|(kind, _)| mutation.creates(kind)) else { return Ok(()) };
    push_once(&mut mutation.object["metadata"]["finalizers"], (*finalizer).into());
    Ok(())
}
