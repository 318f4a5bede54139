//! The `scale` subresource as a table: desired and available replicas.
//! `kubectl get --raw` of `/scale` is JSON; the table is for clients that ask for one, as for any other object.
//! Upstream: `printScale` of `pkg/printers/internalversion/printers.go`, and for custom kinds
//! `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Include, assemble, cells, default_columns, row};
use crate::registry::kind::{Cell, Printer};

/// The cells of a `Scale`.
const CELLS: Printer =
    Printer::Cells(&[Cell::Name, Cell::Int("/spec/replicas"), Cell::Int("/status/replicas"), Cell::Age]);

/// Returns a `Scale` as a table. Built-in kinds and custom resources have the same columns with different descriptions.
/// `is_custom` is `true` for custom resources. The table has one row, and `resourceVersion` of the scaled object.
pub(crate) fn scale_table(scale: &Value, is_custom: bool, now: Timestamp, include: Include) -> Value {
    let (name, created) = (&default_columns()[0]["description"], &default_columns()[1]["description"]);
    let column = |name: &str, r#type: &str, format: &str, description: &Value| json!({ "name": name, "type": r#type, "format": format, "description": description, "priority": 0 });
    let columns = if is_custom {
        json!([
            column("Name", "string", "name", name),
            column("Desired", "integer", "", &"Number of desired replicas".into()),
            column("Available", "integer", "", &"Number of actual replicas".into()),
            column("Age", "date", "", created),
        ])
    } else {
        let desired = "replicas is the desired number of instances for the scaled object.";
        let available = "replicas is the actual number of observed instances of the scaled object.";
        json!([
            column("Name", "string", "", name),
            column("Desired", "integer", "", &desired.into()),
            column("Available", "integer", "", &available.into()),
            column("Age", "string", "", created),
        ])
    };
    let cells = cells::cells(CELLS, scale, now);
    let meta = json!({ "resourceVersion": scale["metadata"]["resourceVersion"] });
    assemble(columns, vec![row(cells, scale, include)], meta)
}
