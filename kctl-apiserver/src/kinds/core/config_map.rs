//! `ConfigMap` of the core group: configuration as strings and binary values.
//!
//! Upstream: `pkg/registry/core/configmap/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    registry::kind::{Cell, Kind, TableColumns, Validation},
    table::fields::entries,
    validation::config_key::{VALUES_BYTES_MAX, decoded_len, validate_config_key},
};

pub(crate) static KIND: Kind = Kind {
    resource: "configmaps",
    kind: "ConfigMap",
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Computed(|map, _| n_keys(map).into()), Cell::Age]),
    quota: super::counted_by_name!("configmaps"),
    ..Kind::DEFAULT
};

/// Returns the number of keys of `data` and `binaryData`.
fn n_keys(object: &Value) -> usize {
    entries(object, "/data") + entries(object, "/binaryData")
}

/// Validates that an immutable object keeps its data and remains immutable. Labels and annotations may still change.
/// Secrets use it, too.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let object = Field::new(new, "", errors);
    for name in ["immutable", "data", "binaryData"] {
        let is_changed = old["immutable"] == true && old[name] != new[name];
        object.at(name).forbidden_if(is_changed, "field is immutable when `immutable` is set");
    }
}

/// Validates keys and size (`ValidateConfigMap`).
///
/// Sizes count the values, not the keys; values of `binaryData` count with their decoded size.
fn validate(object: &Value, errors: &mut Errors) {
    let map = Field::new(object, "", errors);
    let (data, binary, mut n_bytes) = (map.at("data"), map.at("binaryData"), 0);
    for (key, value) in data.entries() {
        value.with(&key.into()).check(validate_config_key);
        value.with(&key.into()).invalid_if(!binary[key].is_null(), "must not also be a key of binaryData");
        n_bytes += value.text().len();
    }
    for (key, value) in binary.entries() {
        value.with(&key.into()).check(validate_config_key);
        n_bytes += decoded_len(value.text());
    }
    if n_bytes > VALUES_BYTES_MAX {
        map.at("[]").too_long(VALUES_BYTES_MAX);
    }
}
