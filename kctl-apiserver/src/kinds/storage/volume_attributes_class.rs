//! `VolumeAttributesClass` of `storage.k8s.io`.
//!
//! It names parameters of a driver that can change while a volume exists, such as a number of operations per second.
//! Driver and parameters are immutable: a claim changes its volume by naming another class.
//!
//! Upstream: `pkg/registry/storage/volumeattributesclass/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    kinds::storage::validate_parameters,
    registry::kind::{Cell, DeleteStrategy, Kind, Plugin, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattributesclasses",
    kind: "VolumeAttributesClass",
    admission: &[Plugin::StorageObjectInUseProtection("kubernetes.io/vac-protection")],
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[Cell::Name, Cell::Text("/driverName"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates that driver and parameters are unchanged (`FieldValueForbidden`).
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let class = Field::new(new, "", errors);
    for field in ["driverName", "parameters"] {
        class.at(field).forbidden_if(old[field] != new[field], "must not change");
    }
}

/// Validates a class (`ValidateVolumeAttributesClass`): a driver, and at least one parameter.
fn validate(object: &Value, errors: &mut Errors) {
    let class = Field::new(object, "", errors);
    let driver = class.at("driverName");
    if driver.require_value() {
        let lower_case = Value::from(driver.text().to_lowercase());
        driver.with(&lower_case).qualified_name();
    }
    class.at("parameters").required_if(class.at("parameters").is_empty());
    validate_parameters(&class.at("parameters"));
}
