//! The `scale` subresource as a table: desired and available replicas.
//!
//! Upstream: `printScale` of `pkg/printers/internalversion/printers.go`, and for custom kinds
//! `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Include, assemble, cells, default_columns, row};
use crate::registry::{
    Resource,
    kind::{Cell, Printer},
};

/// The cells of a `Scale`.
const CELLS: Printer =
    Printer::Cells(&[Cell::Name, Cell::Int("/spec/replicas"), Cell::Int("/status/replicas"), Cell::Age]);

/// Returns a `Scale` of an object of the resource as a table. Built-in kinds and custom resources have the same columns
/// with different descriptions.
pub(crate) fn scale_table(resource: &Resource, scale: &Value, now: Timestamp, include: Include) -> Value {
    let description = |column: usize| default_columns()[column]["description"].as_str().unwrap_or_default();
    let (name_format, age_type, desired, available) = if resource.custom.is_some() {
        ("name", "date", "Number of desired replicas", "Number of actual replicas")
    } else {
        let desired = "replicas is the desired number of instances for the scaled object.";
        ("", "string", desired, "replicas is the actual number of observed instances of the scaled object.")
    };
    let columns = [
        ("Name", "string", name_format, description(0)),
        ("Desired", "integer", "", desired),
        ("Available", "integer", "", available),
        ("Age", age_type, "", description(1)),
    ];
    let columns = columns.map(|(name, r#type, format, description)| {
        json!({ "name": name, "type": r#type, "format": format, "description": description, "priority": 0 })
    });
    let cells = cells::cells(CELLS, scale, now);
    let meta = json!({ "resourceVersion": scale["metadata"]["resourceVersion"] });
    assemble(json!(columns), vec![row(cells, scale, include)], meta)
}
