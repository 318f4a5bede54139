//! `CSIStorageCapacity` of `storage.k8s.io`.

use serde_json::Value;

use crate::{
    admit::rules::{self, change::keeps},
    field_errors::Errors,
    registry::kind::Kind,
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csistoragecapacities",
    kind: "CSIStorageCapacity",
    allows_unconditional_update: false,
    validate: rules::attached::capacity,
    validate_update,
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["nodeTopology", "storageClassName"] {
        keeps(field, &old[field], &new[field], errors);
    }
}
