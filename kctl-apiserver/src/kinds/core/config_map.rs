//! `ConfigMap` of the core group: configuration as strings and binary values.
//!
//! The server validates keys and the total size, and rejects changes of immutable objects.
//!
//! Quotas count objects as `configmaps` and `count/configmaps`. An object that was made immutable
//! can only be deleted.
//!
//! Upstream: `pkg/registry/core/configmap/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    registry::kind::{Cell, Kind, TableColumns, Validation},
    table::fields::entries,
    validation::config_key::{VALUES_BYTES_MAX, config_key},
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

/// Validates that an immutable object keeps `immutable`, `data` and `binaryData` (`FieldValueForbidden`). Secrets use it,
/// too.
///
/// `immutable` itself cannot be unset. Labels and annotations may still change.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        errors.forbidden("immutable", detail);
    }
    for part in ["data", "binaryData"] {
        if old[part] != new[part] {
            errors.forbidden(part, detail);
        }
    }
}

/// Validates keys and size (`ValidateConfigMap`).
///
/// A key may not be in both maps (`FieldValueInvalid`). The values together have at most 1 MiB (`FieldValueTooLong`).
///
/// Sizes are those of the values, without the keys. Four base64 characters of `binaryData` count as three bytes.
fn validate(object: &Value, errors: &mut Errors) {
    let mut n_bytes = 0;
    for (key, value) in pairs(&object["data"]) {
        config_key(key, &format!("data[{key}]"), errors);
        if !object["binaryData"][key].is_null() {
            errors.invalid(&format!("data[{key}]"), &key.into(), "duplicate of key present in binaryData");
        }
        n_bytes += text(value).len();
    }
    for (key, value) in pairs(&object["binaryData"]) {
        config_key(key, &format!("binaryData[{key}]"), errors);
        n_bytes += text(value).len() / 4 * 3;
    }
    if n_bytes > VALUES_BYTES_MAX {
        errors.too_long("[]", VALUES_BYTES_MAX);
    }
}
