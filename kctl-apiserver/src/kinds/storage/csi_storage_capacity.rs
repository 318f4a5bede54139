//! `CSIStorageCapacity` of `storage.k8s.io`.
//!
//! It reports how much storage of a class a driver can provide in a part of the topology. The scheduler reads it.
//! Topology and class are immutable; the capacity changes.
//!
//! Upstream: `pkg/registry/storage/csistoragecapacity/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Kind, Strategy, Validation},
    validation::{resources, selector},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csistoragecapacities",
    kind: "CSIStorageCapacity",
    strategy: Strategy::CONDITIONAL,
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    ..Kind::DEFAULT
};

/// Validates that topology and storage class are unchanged (`ValidateCSIStorageCapacityUpdate`).
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let capacity = Field::new(new, "", errors);
    for field in ["nodeTopology", "storageClassName"] {
        capacity.at(field).immutable(&old[field]);
    }
}

/// Validates a capacity (`ValidateCSIStorageCapacity`).
fn validate(object: &Value, errors: &mut Errors) {
    let capacity = Field::new(object, "", errors);
    capacity.at("nodeTopology").check(selector::validate_selector);
    capacity.at("storageClassName").name(NameRule::Subdomain);
    let amount = capacity.at("capacity");
    amount.invalid_if(resources::size(&amount).is_some_and(|size| size < 0), "must be greater than or equal to 0");
}
