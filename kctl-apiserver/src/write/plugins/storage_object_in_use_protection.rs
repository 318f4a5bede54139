//! `StorageObjectInUseProtection`: adds a finalizer to new volumes, claims and `VolumeAttributesClasses`.
//!
//! Upstream: `storageProtectionPlugin.Admit` in
//! `plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go`.

use serde_json::{Value, json};

use super::Mutation;
use crate::{
    kinds::{
        core::{persistent_volume, persistent_volume_claim},
        storage::volume_attributes_class,
    },
    registry::kind::Kind,
    state::State,
    status::StatusError,
};

/// The protected kinds with their finalizers.
///
/// A controller removes the finalizer when the object is no longer in use.
static FINALIZERS: [(&Kind, &str); 3] = [
    (&persistent_volume_claim::KIND, "kubernetes.io/pvc-protection"),
    (&persistent_volume::KIND, "kubernetes.io/pv-protection"),
    (&volume_attributes_class::KIND, "kubernetes.io/vac-protection"),
];

/// Adds the finalizer of the kind to a new object. A finalizer that was sent is not added twice.
pub(super) fn admit(_: &mut State, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    let Some((_, finalizer)) = FINALIZERS.iter().find(|(kind, _)| mutation.creates(kind)) else { return Ok(()) };
    match &mut mutation.object["metadata"]["finalizers"] {
        Value::Array(list) if list.iter().any(|existing| existing == finalizer) => {}
        Value::Array(list) => list.push((*finalizer).into()),
        none => *none = json!([finalizer]),
    }
    Ok(())
}
