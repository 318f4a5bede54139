//! The row of a `PersistentVolume`, and cells that it shares with the row of a claim.
//!
//! Upstream: `printPersistentVolume` in `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use super::CLASS_ANNOTATION;
use crate::{
    registry::kind::Cell,
    table::{
        fields::{annotation, is_deleting, scalar, text, texts, value_at},
        labels::UNSET,
    },
};

/// The cells of a volume.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Name,
    Cell::Computed(|volume, _| storage(volume, "/spec/capacity/storage").into()),
    Cell::Computed(|volume, _| access_modes(volume, "/spec/accessModes").into()),
    Cell::Text("/spec/persistentVolumeReclaimPolicy"),
    Cell::Computed(|volume, _| phase(volume).into()),
    Cell::Computed(|volume, _| claim(value_at(volume, "/spec/claimRef")).into()),
    Cell::Computed(|volume, _| storage_class_name(volume).into()),
    Cell::TextOr("/spec/volumeAttributesClassName", UNSET),
    Cell::Text("/status/reason"),
    Cell::Age,
    Cell::TextOr("/spec/volumeMode", UNSET),
];

/// Returns the claim of a volume as `namespace/name`; empty for a volume that no claim has.
fn claim(reference: &Value) -> String {
    if !reference.is_object() {
        return String::new();
    }
    format!("{}/{}", text(reference, "/namespace"), text(reference, "/name"))
}

/// Returns the phase of a volume or claim; `Terminating` from the moment of its deletion.
pub(crate) fn phase(object: &Value) -> &str {
    if is_deleting(object) { "Terminating" } else { text(object, "/status/phase") }
}

/// Returns the quantity at the pointer as it is stored, or `0`.
pub(crate) fn storage(object: &Value, pointer: &str) -> String {
    scalar(value_at(object, pointer)).unwrap_or_else(|| "0".to_owned())
}

/// Returns the short names of the access modes at the pointer, as in `RWO,RWX`. Their order is fixed
/// (`GetAccessModesAsString`); unknown modes and duplicates are left out.
pub(crate) fn access_modes(object: &Value, pointer: &str) -> String {
    let modes = texts(object, pointer);
    let short_names =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let shown: Vec<_> =
        short_names.into_iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| short).collect();
    shown.join(",")
}

/// Returns the storage class of a volume or claim. The annotation is older than the field and takes precedence.
pub(crate) fn storage_class_name(object: &Value) -> &str {
    match annotation(object, CLASS_ANNOTATION) {
        "" => text(object, "/spec/storageClassName"),
        class => class,
    }
}
