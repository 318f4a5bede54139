//! `VolumeAttributesClass` of `storage.k8s.io`.
//!
//! It names parameters of a driver that can change while a volume exists, such as a number of
//! operations per second.
//!
//! Driver and parameters are immutable: a claim changes its volume by naming another class. A
//! finalizer protects a class that is in use.
//!
//! Upstream: `pkg/registry/storage/volumeattributesclass/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    kinds::storage::parameters,
    registry::kind::{Cell, DeleteAnswer, DeleteStrategy, Kind, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattributesclasses",
    kind: "VolumeAttributesClass",
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    delete: DeleteStrategy { answer: DeleteAnswer::Object, ..DeleteStrategy::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Text("/driverName"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates that driver and parameters are unchanged (`FieldValueForbidden`).
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["driverName", "parameters"].into_iter().filter(|field| old[*field] != new[*field]) {
        errors.forbidden(field, &format!("updates to {field} are forbidden."));
    }
}

/// Validates a class (`ValidateVolumeAttributesClass`): a driver, and at least one parameter.
fn validate(object: &Value, errors: &mut Errors) {
    let driver = text(&object["driverName"]);
    if driver.is_empty() {
        errors.required("driverName", "");
    } else {
        errors.qualified_name("driverName", &driver.to_lowercase());
    }
    if pairs(&object["parameters"]).next().is_none() {
        errors.required("parameters", "must contain at least one key/value pair");
    }
    parameters(&object["parameters"], errors);
}
