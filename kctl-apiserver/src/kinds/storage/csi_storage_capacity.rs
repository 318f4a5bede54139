//! `CSIStorageCapacity` of `storage.k8s.io`.
//!
//! It reports how much storage of a class a driver can provide in a part of the topology. The
//! scheduler reads it.
//!
//! Topology and class are immutable; the capacity changes. `kubectl get` shows name and time of
//! creation.
//!
//! Upstream: `pkg/registry/storage/csistoragecapacity/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    registry::kind::{Kind, Strategy, Validation},
    validation::{immutable::immutable_field, resources, selector},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csistoragecapacities",
    kind: "CSIStorageCapacity",
    strategy: Strategy { allows_unconditional_update: false, ..Strategy::DEFAULT },
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    ..Kind::DEFAULT
};

/// Validates that topology and storage class are unchanged (`ValidateCSIStorageCapacityUpdate`).
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["nodeTopology", "storageClassName"] {
        immutable_field(field, &old[field], &new[field], errors);
    }
}

/// Validates a capacity (`ValidateCSIStorageCapacity`): a label selector, the name of a class, and
/// an amount of at least 0.
fn validate(object: &Value, errors: &mut Errors) {
    selector::selector(&object["nodeTopology"], "nodeTopology", errors);
    errors.name("storageClassName", &text(&object["storageClassName"]).into(), NameRule::Subdomain);
    if resources::size(&object["capacity"]).is_some_and(|size| size < 0) {
        errors.invalid("capacity", &object["capacity"], "must be greater than or equal to 0");
    }
}
