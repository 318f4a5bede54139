//! `StorageClass` of `storage.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
        warnings,
    },
    field_errors::Errors,
    registry::kind::{DeleteAnswer, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "storageclasses",
    kind: "StorageClass",
    delete_answer: DeleteAnswer::Object,
    default: defaults::api::storage_class,
    validate: rules::storage::class,
    validate_update,
    warn: |_, object, warnings| warnings::storage_class(object, warnings),
    printer: Some(table::storage::storage_class),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        keeps(field, &old[field], &new[field], errors);
    }
}
