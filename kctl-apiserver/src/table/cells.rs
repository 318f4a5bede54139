//! The cells of a row that a kind describes as data.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    age::{age, since_text},
    fields::{annotation, entries, flag, int, list, name, scalar, text, text_or, value_at},
    labels,
};
use crate::registry::kind::{Cell, Printer};

/// The cells of a kind without a printer. The client, not the server, turns the creation time into an age; an object
/// without one has Go's zero time.
pub(super) const DEFAULT: Printer =
    Printer::Cells(&[Cell::Name, Cell::TextOr("/metadata/creationTimestamp", "0001-01-01T00:00:00Z")]);

/// The containers of a Pod template. Init containers are not shown.
const CONTAINERS: &str = "/spec/containers";

/// Returns the cells of an object's row.
pub(super) fn cells(printer: Printer, object: &Value, now: Timestamp) -> Vec<Value> {
    match printer {
        Printer::Cells(cells) => cells.iter().map(|cell| value(*cell, object, now)).collect(),
        Printer::Function(cells) => cells(object, now),
    }
}

/// Returns one cell.
fn value(cell: Cell, object: &Value, now: Timestamp) -> Value {
    match cell {
        Cell::Name => json!(name(object)),
        Cell::ClassName(annotations) => {
            let is_default = annotations.iter().any(|key| annotation(object, key) == "true");
            json!(format!("{}{}", name(object), if is_default { " (default)" } else { "" }))
        }
        Cell::Age => json!(age(object, now)),
        Cell::Text(field) => json!(text(object, field)),
        Cell::TextOr(field, otherwise) => json!(text_or(object, field, otherwise)),
        Cell::Int(field) => json!(int(object, field)),
        Cell::IntOr(field, otherwise) => value_at(object, field).as_i64().map_or_else(|| json!(otherwise), Value::from),
        Cell::ScalarOr(field, otherwise) => json!(scalar(value_at(object, field)).as_deref().unwrap_or(otherwise)),
        Cell::Flag(field) => json!(flag(object, field)),
        Cell::Count(field) => json!(list(object, field).len() + entries(object, field)),
        Cell::JoinedOr(items, _, otherwise) if list(object, items).is_empty() => json!(otherwise),
        Cell::Joined(items, field) | Cell::JoinedOr(items, field, _) => json!(join_field(object, items, field)),
        Cell::SinceOr(field, otherwise) => match text(object, field) {
            "" => json!(otherwise),
            time => json!(since_text(time, now)),
        },
        Cell::Containers(template) => json!(join_field(value_at(object, template), CONTAINERS, "/name")),
        Cell::Images(template) => json!(join_field(value_at(object, template), CONTAINERS, "/image")),
        Cell::Labels(field) => json!(labels::selector(value_at(object, field))),
        Cell::Computed(compute) => compute(object, now),
    }
}

/// Returns the strings at `field` of the items of a list, joined by commas.
fn join_field(object: &Value, items: &str, field: &str) -> String {
    list(object, items).iter().map(|item| text(item, field)).collect::<Vec<_>>().join(",")
}
