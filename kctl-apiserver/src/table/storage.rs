//! The rows of volumes, claims and `storage.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::fields::{annotation, at, flag, is_deleting, list, name, scalar, text, text_or, texts};

const UNSET: &str = "<unset>";
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub(crate) fn persistent_volume(object: &Value, now: Timestamp) -> Vec<Value> {
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

/// The capacity and the modes of a claim show once it names a volume.
pub(crate) fn persistent_volume_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let volume = text(object, "/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (storage(object, "/status/capacity/storage"), access_modes(object, "/status/accessModes"))
    };
    vec![
        json!(name(object)),
        json!(phase(object)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(storage_class_name(object)),
        json!(text_or(object, "/spec/volumeAttributesClassName", UNSET)),
        json!(age(object, now)),
        json!(text_or(object, "/spec/volumeMode", UNSET)),
    ]
}

fn phase(object: &Value) -> &str {
    if is_deleting(object) { "Terminating" } else { text(object, "/status/phase") }
}

fn storage(object: &Value, pointer: &str) -> String {
    scalar(at(object, pointer)).unwrap_or_else(|| "0".to_owned())
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let modes = texts(object, pointer);
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let shown: Vec<_> = known.into_iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| short).collect();
    shown.join(",")
}

/// The annotation is older than the field and still wins.
fn storage_class_name(object: &Value) -> &str {
    match annotation(object, "volume.beta.kubernetes.io/storage-class") {
        "" => text(object, "/spec/storageClassName"),
        class => class,
    }
}

pub(crate) fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let is_default = DEFAULT_CLASS.iter().any(|key| annotation(object, key) == "true");
    let name = if is_default { format!("{} (default)", name(object)) } else { name(object).to_owned() };
    vec![
        json!(name),
        json!(text(object, "/provisioner")),
        json!(text_or(object, "/reclaimPolicy", "Delete")),
        json!(text_or(object, "/volumeBindingMode", "Immediate")),
        json!(flag(object, "/allowVolumeExpansion")),
        json!(age(object, now)),
    ]
}

pub(crate) fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let audiences: Vec<_> =
        list(object, "/spec/tokenRequests").iter().map(|request| text(request, "/audience")).collect();
    let modes = texts(object, "/spec/volumeLifecycleModes").join(",");
    vec![
        json!(name(object)),
        json!(at(object, "/spec/attachRequired").as_bool().unwrap_or(true)),
        json!(flag(object, "/spec/podInfoOnMount")),
        json!(flag(object, "/spec/storageCapacity")),
        json!(if audiences.is_empty() { UNSET.to_owned() } else { audiences.join(",") }),
        json!(flag(object, "/spec/requiresRepublish")),
        json!(if modes.is_empty() { "Persistent".to_owned() } else { modes }),
        json!(age(object, now)),
    ]
}

pub(crate) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(list(object, "/spec/drivers").len()), json!(age(object, now))]
}

pub(crate) fn volume_attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/spec/attacher")),
        json!(text(object, "/spec/source/persistentVolumeName")),
        json!(text(object, "/spec/nodeName")),
        json!(flag(object, "/status/attached")),
        json!(age(object, now)),
    ]
}

pub(crate) fn volume_attributes_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/driverName")), json!(age(object, now))]
}
