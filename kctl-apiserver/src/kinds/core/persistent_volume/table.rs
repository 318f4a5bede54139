//! The row of a `PersistentVolume`, and cells that it shares with that of a claim.
//! Upstream: `printPersistentVolume` in `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::age,
    fields::{annotation, is_deleting, name, scalar, text, text_or, texts, value_at},
    labels::UNSET,
};

/// Returns the columns of a volume.
///
/// | column | content |
/// |---|---|
/// | Capacity | `spec.capacity.storage`, or `0` |
/// | Access Modes | short names, as `RWO,ROX` |
/// | Status | see `phase` |
/// | Claim | `namespace/name` of `spec.claimRef`; empty for a volume that no claim has |
/// | `StorageClass` | see `storage_class_name` |
/// | `VolumeAttributesClass`, `VolumeMode` | `<unset>` if they are absent |
/// | Reason | `status.reason`, why the volume failed |
pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = value_at(object, "/spec/claimRef");
    let claim = if claim.is_object() {
        format!("{}/{}", text(claim, "/namespace"), text(claim, "/name"))
    } else {
        String::new()
    };
    vec![
        json!(name(object)),
        json!(storage(object, "/spec/capacity/storage")),
        json!(access_modes(object, "/spec/accessModes")),
        json!(text(object, "/spec/persistentVolumeReclaimPolicy")),
        json!(phase(object)),
        json!(claim),
        json!(storage_class_name(object)),
        json!(text_or(object, "/spec/volumeAttributesClassName", UNSET)),
        json!(text(object, "/status/reason")),
        json!(age(object, now)),
        json!(text_or(object, "/spec/volumeMode", UNSET)),
    ]
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
    match annotation(object, "volume.beta.kubernetes.io/storage-class") {
        "" => text(object, "/spec/storageClassName"),
        class => class,
    }
}
