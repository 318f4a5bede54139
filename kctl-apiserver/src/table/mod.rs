//! Tables: the `Table` of `meta.k8s.io/v1` that kubectl requests, with rows of cells instead of objects.
//!
//! The columns of the built-in kinds are in `data/columns.json`, recorded from kube-apiserver; the cells of a row come
//! from the file of the kind (`TableColumns`). `kubectl get` sends
//! `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`. The response has `columnDefinitions` once, and per object a
//! row with cells in the same order:
//!
//! ```text
//! columnDefinitions: [{name: Name, type: string, priority: 0}, {name: Data, ...}, {name: Age, ...}]
//! rows: [{cells: [a, 2, 5m], object: {kind: PartialObjectMetadata, ...}}]
//! ```
//!
//! kubectl shows columns of priority 0 always, and the others with `-o wide`.

pub(crate) mod age;
mod cells;
mod custom;
pub(crate) mod fields;
mod jsonpath;
pub(crate) mod labels;
mod partial;
mod scale;
pub(crate) mod workload;

use std::{collections::HashMap, sync::LazyLock};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::registry::Kind;

pub(crate) use self::{
    partial::{partial, partial_list},
    scale::scale_table,
};

/// The part of each object that a row includes (query parameter `includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    /// No part of the object, only the cells.
    None,
    /// A `PartialObjectMetadata`; the default.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

/// The columns of one kind in `data/columns.json`.
#[derive(Deserialize)]
struct Entry {
    /// The API group; empty for the core group.
    group: String,
    /// The kind in `CamelCase`.
    kind: String,
    /// The `columnDefinitions` of a table of this kind, as they are sent.
    columns: Value,
}

/// The recorded columns by group and kind.
static COLUMNS: LazyLock<HashMap<(String, String), Value>> = LazyLock::new(|| {
    let entries: Vec<Entry> =
        serde_json::from_str(include_str!("../../data/columns.json")).expect("the file is generated and tested");
    entries.into_iter().map(|entry| ((entry.group, entry.kind), entry.columns)).collect()
});

/// Returns objects of a built-in kind as a table. `list_meta` is the metadata of the table: `resourceVersion` and
/// `continue`. A kind without printer columns has the columns name and creation time.
pub(crate) fn table(kind: &Kind, objects: &[Value], now: Timestamp, include: Include, list_meta: Value) -> Value {
    let printer = kind.table.printer.unwrap_or(cells::DEFAULT);
    let columns = COLUMNS.get(&(kind.group.to_owned(), kind.kind.to_owned())).unwrap_or(default_columns());
    let mut ordered: Vec<_> = objects.iter().collect();
    if let Some(order) = kind.table.order {
        ordered.sort_by_key(|object| order(object));
    }
    let row = |object: &Value| {
        let mut row = row(cells::cells(printer, object, now), object, include);
        if let Some(conditions) = (kind.table.conditions)(object) {
            row["conditions"] = conditions;
        }
        row
    };
    let mut table = assemble(columns.clone(), ordered.into_iter().map(row).collect(), list_meta);
    // Go's default printer leaves the rows of an empty table nil, which is null in JSON.
    if kind.table.printer.is_none() && objects.is_empty() {
        table["rows"] = Value::Null;
    }
    table
}

/// Returns objects of a custom resource as a table. `columns` are the `additionalPrinterColumns` of the version;
/// without any, the table has the column `Age`. The first column with an invalid JSON path and all columns after it are
/// left out, as in kube-apiserver.
pub(crate) fn custom_table(
    columns: &[Value],
    objects: &[Value],
    now: Timestamp,
    include: Include,
    list_meta: Value,
) -> Value {
    let age = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": default_columns()[1]["description"],
    })];
    let columns = custom::columns(if columns.is_empty() { &age } else { columns });
    let name = default_columns()[0].clone();
    let definitions = std::iter::once(name).chain(columns.iter().map(|column| column.definition.clone())).collect();
    let mut left = CELLS_LEN_MAX;
    let mut cells = |object: &Value| {
        let cells = columns.iter().map(|column| within(&mut left, column.cell(object, now)));
        std::iter::once(json!(fields::name(object))).chain(cells).collect()
    };
    let rows = objects.iter().map(|object| row(cells(object), object, include)).collect();
    assemble(definitions, rows, list_meta)
}

/// Maximum bytes of all cells in a table of custom objects: hundreds of columns may each print the whole object.
const CELLS_LEN_MAX: usize = 64 << 20;
/// The cell that replaces one beyond [`CELLS_LEN_MAX`].
const TOO_LARGE: &str = "<too large>";

/// Returns the cell and charges its size to `left`, or [`TOO_LARGE`] if it no longer fits.
fn within(left: &mut usize, cell: Value) -> Value {
    match left.checked_sub(cell.as_str().map_or(1, str::len)) {
        Some(rest) => {
            *left = rest;
            cell
        }
        None => TOO_LARGE.into(),
    }
}

/// Returns the `Table` object. `definitions` and the cells of each row have the same order and number.
fn assemble(definitions: Value, rows: Vec<Value>, list_meta: Value) -> Value {
    fields::object([
        ("kind", json!("Table")),
        ("apiVersion", json!("meta.k8s.io/v1")),
        ("metadata", list_meta),
        ("columnDefinitions", definitions),
        ("rows", Value::Array(rows)),
    ])
}

/// Returns a `TableRow` with the part of the object that the client requested.
fn row(cells: Vec<Value>, object: &Value, include: Include) -> Value {
    let included = match include {
        Include::None => Value::Null,
        Include::Metadata => partial(object),
        Include::Object => object.clone(),
    };
    fields::object([("cells", Value::Array(cells)), ("object", included)])
}

/// Returns the columns of a kind without a printer: the recorded ones of `LimitRange`.
fn default_columns() -> &'static Value {
    static NO_COLUMNS: Value = Value::Null;
    COLUMNS.get(&(String::new(), "LimitRange".to_owned())).unwrap_or(&NO_COLUMNS)
}

#[cfg(test)]
mod tests;
