//! `StorageClass` of `storage.k8s.io`.

use crate::{
    admit::{defaults, rules, warnings},
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
    warn: |_, object, warnings| warnings::storage_class(object, warnings),
    printer: Some(table::storage::storage_class),
    ..Kind::DEFAULT
};
