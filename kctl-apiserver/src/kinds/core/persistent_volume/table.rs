//! The row of a `PersistentVolume`, and cells that it shares with that of a claim.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::age,
    fields::{annotation, at, is_deleting, name, scalar, text, text_or, texts},
    labels::UNSET,
};

pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = at(object, "/spec/claimRef");
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

pub(crate) fn phase(object: &Value) -> &str {
    if is_deleting(object) { "Terminating" } else { text(object, "/status/phase") }
}

pub(crate) fn storage(object: &Value, pointer: &str) -> String {
    scalar(at(object, pointer)).unwrap_or_else(|| "0".to_owned())
}

pub(crate) fn access_modes(object: &Value, pointer: &str) -> String {
    let modes = texts(object, pointer);
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let shown: Vec<_> = known.into_iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| short).collect();
    shown.join(",")
}

/// The annotation is older than the field and still wins.
pub(crate) fn storage_class_name(object: &Value) -> &str {
    match annotation(object, "volume.beta.kubernetes.io/storage-class") {
        "" => text(object, "/spec/storageClassName"),
        class => class,
    }
}
