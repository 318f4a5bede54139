//! `CSINode` of `storage.k8s.io`: the CSI drivers that are installed on a node.
//!
//! The kubelet creates and changes it; its name is that of the Node. A driver's ID and topology keys are immutable. An
//! empty list of drivers is stored as `null`, as Go encodes it.
//!
//! Upstream: `pkg/registry/storage/csinode/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    registry::kind::{Cell, DeleteAnswer, DeleteStrategy, Kind, NewStatus, Strategy, TableColumns, Validation},
    validation::{entries, format},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csinodes",
    kind: "CSINode",
    strategy: Strategy {
        allows_unconditional_update: false,
        new_status: NewStatus::Empty,
        null_when_empty: Some("/spec/drivers"),
        ..Strategy::DEFAULT
    },
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    delete: DeleteStrategy { answer: DeleteAnswer::Object, ..DeleteStrategy::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Count("/spec/drivers"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates that drivers that are not removed are unchanged.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    drivers_stay(&old["spec"]["drivers"], &new["spec"]["drivers"], errors);
}

/// Maximum length of a driver's ID of a node, in bytes (`csiNodeIDMaxLength`).
const NODE_ID_LEN_MAX: usize = 256;

/// Validates the drivers of a node (`ValidateCSINode`): unique names, an ID of at most 256 bytes,
/// and topology keys.
///
/// A negative number of volumes is `FieldValueInvalid`; an absent one is unlimited.
fn validate(object: &Value, errors: &mut Errors) {
    let drivers = &object["spec"]["drivers"];
    for (index, driver) in entries(drivers) {
        let path = format!("spec.drivers[{index}]");
        format::driver(&driver["name"], &format!("{path}.name"), errors);
        let id = text(&driver["nodeID"]);
        if id.is_empty() {
            errors.required(&format!("{path}.nodeID"), "");
        } else if id.len() > NODE_ID_LEN_MAX {
            let detail = format!("must be {NODE_ID_LEN_MAX} characters or less");
            errors.invalid(&format!("{path}.nodeID"), &driver["nodeID"], &detail);
        }
        errors.not_negative(&format!("{path}.allocatable.count"), &driver["allocatable"]["count"]);
        if entries(drivers).take(index).any(|(_, other)| other["name"] == driver["name"]) {
            errors.duplicate(&format!("{path}.name"));
        }
        topology(&driver["topologyKeys"], &path, errors);
    }
}

/// Validates that ID and topology keys of a driver are unchanged (`ValidateCSINodeUpdate`).
///
/// Drivers may be added and removed, and the number of their volumes may change. The error is at
/// the list and shows the new driver.
fn drivers_stay(old: &Value, new: &Value, errors: &mut Errors) {
    /// Fields of a driver that are immutable.
    const STAY: [&str; 2] = ["nodeID", "topologyKeys"];
    for (_, was) in entries(old) {
        let same = entries(new).find(|(_, is)| is["name"] == was["name"]);
        if let Some((_, is)) = same.filter(|(_, is)| STAY.iter().any(|field| was[*field] != is[*field])) {
            errors.invalid("spec.drivers", is, "field is immutable");
        }
    }
}

/// Validates the topology keys of a driver: qualified names, each once. Errors are at the driver,
/// not at the key.
fn topology(keys: &Value, path: &str, errors: &mut Errors) {
    for (index, key) in entries(keys) {
        if text(key).is_empty() {
            errors.required(path, "");
        }
        if entries(keys).take(index).any(|(_, other)| other == key) {
            errors.duplicate(path);
        }
        errors.qualified_name(path, text(key));
    }
}
