//! `StorageClass` of `storage.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules, warnings},
    registry::kind::{DeleteAnswer, Kind},
    table::{
        age::age,
        fields::{annotation, flag, name, text, text_or},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "storageclasses",
    kind: "StorageClass",
    delete_answer: DeleteAnswer::Object,
    default: defaults::api::storage_class,
    validate: rules::storage::class,
    warn: |_, object, warnings| warnings::storage_class(object, warnings),
    printer: Some(cells),
    ..Kind::DEFAULT
};

const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
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
