//! `CSINode` of `storage.k8s.io`: the CSI drivers that are installed on a node.
//!
//! The kubelet creates and changes it; it has the name of the Node. A driver's ID and topology keys are immutable.
//!
//! Upstream: `pkg/registry/storage/csinode/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    registry::kind::{Cell, DeleteStrategy, Kind, NewStatus, Strategy, TableColumns, Validation},
    validation::format,
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csinodes",
    kind: "CSINode",
    strategy: Strategy {
        new_status: NewStatus::Empty,
        null_when_empty: Some("/spec/drivers"),
        ..Strategy::CONDITIONAL
    },
    validation: Validation { validate, validate_update, ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[Cell::Name, Cell::Count("/spec/drivers"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates that ID and topology keys of a driver are unchanged (`ValidateCSINodeUpdate`).
///
/// Drivers may be added and removed, and the number of their volumes may change. The error is at the list.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let drivers = Field::new(&new["spec"]["drivers"], "spec.drivers", errors);
    let before = entries(&old["spec"]["drivers"]).map(|(_, driver)| (text(&driver["name"]), driver));
    let before: BTreeMap<&str, &Value> = before.collect();
    let is_changed = entries(&drivers).any(|(_, driver)| {
        let was = before.get(text(&driver["name"]));
        was.is_some_and(|was| ["nodeID", "topologyKeys"].iter().any(|field| was[*field] != driver[*field]))
    });
    drivers.invalid_if(is_changed, "nodeID and topologyKeys are immutable");
}

/// Maximum length of a driver's ID of a node, in bytes (`csiNodeIDMaxLength`).
const NODE_ID_LEN_MAX: usize = 256;

/// Validates the drivers of a node (`ValidateCSINode`). An absent number of volumes is unlimited.
fn validate(object: &Value, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for driver in Field::new(&object["spec"]["drivers"], "spec.drivers", errors).items() {
        let (name, id) = (driver.at("name"), driver.at("nodeID"));
        name.check(format::validate_driver_name);
        name.duplicate_if(!names.insert(name.text()));
        id.required_if(id.is_empty());
        id.invalid_if(id.text().len() > NODE_ID_LEN_MAX, format_args!("must be {NODE_ID_LEN_MAX} bytes or less"));
        driver.at("allocatable").at("count").not_negative();
        validate_topology(&driver);
    }
}

/// Validates the topology keys of a driver: qualified names, each once. Errors are at the driver, not at the key.
fn validate_topology(driver: &Field<'_>) {
    let mut seen = BTreeSet::new();
    for (_, key) in entries(&driver["topologyKeys"]) {
        driver.required_if(text(key).is_empty());
        driver.with(key).qualified_name();
        driver.duplicate_if(!seen.insert(text(key)));
    }
}
