//! The `additionalPrinterColumns` of a `CustomResourceDefinition` and their cells.
//!
//! Upstream: `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`. The cells of a custom resource are
//! the values at its paths, by the type of the column:
//!
//! | type | cell |
//! |---|---|
//! | `integer` | the number without its fraction |
//! | `number`, `boolean` | the value |
//! | `string` | scalars as Go prints them, lists and objects as JSON |
//! | `date` | the time since then, as `5m`, or `<invalid>` |
//!
//! The cell is null if the value is missing or has another type.

use jiff::Timestamp;
use kctl_apimachinery::{strconv, time};
use serde_json::{Number, Value, json};

use super::{
    age::{INVALID, since_text},
    fields::{int, text},
    jsonpath::{ColumnPath, PathValue},
};
use crate::go;

/// A printer column after the name column.
pub(crate) struct Column {
    /// The type in the CRD, which decides how a value is printed.
    kind: String,
    /// The parsed `jsonPath`.
    path: ColumnPath,
    /// The `TableColumnDefinition` in the response.
    pub(super) definition: Value,
}

/// Returns the columns up to the first with an invalid `jsonPath`, as kube-apiserver does.
pub(crate) fn columns(definitions: &[Value]) -> Vec<Column> {
    definitions.iter().map_while(Column::parse).collect()
}

impl Column {
    /// Returns a column with its parsed path; `None` if the path is invalid. A column without a description gets one
    /// that has the path, as in kube-apiserver.
    fn parse(definition: &Value) -> Option<Self> {
        let path = text(definition, "/jsonPath");
        let kind = text(definition, "/type");
        let description = match text(definition, "/description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        Some(Self {
            kind: kind.to_owned(),
            path: ColumnPath::parse(path)?,
            definition: json!({
                "name": text(definition, "/name"),
                "type": kind,
                "format": text(definition, "/format"),
                "description": description,
                "priority": int(definition, "/priority"),
            }),
        })
    }

    /// Returns the cell; null if the path finds no value, or one of another type.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match self.path.first(object) {
            Some(PathValue::Stored(value)) => cell(&self.kind, value, now),
            Some(PathValue::Literal(value)) => cell(&self.kind, &value, now),
            Some(PathValue::Plain(number)) if self.kind == "string" => json!(number.to_string()),
            Some(PathValue::Plain(_)) | None => Value::Null,
        }
    }
}

/// Returns the cell for a value in a column of this type. An empty date, and the string `null`, are `<unknown>`.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("integer", Value::Number(number)) => json!(whole(number)),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", _) => json!(print_value(value)),
        ("date", Value::String(time)) if time.is_empty() || time == "null" => json!(since_text("", now)),
        ("date", Value::String(time)) if time::parse(time).is_some() => json!(since_text(time, now)),
        ("date", Value::String(_)) => json!(INVALID),
        _ => Value::Null,
    }
}

/// Returns the number as an integer; a fraction is truncated. Numbers beyond 64 bits become the nearest bound.
#[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off, as the real server does")]
fn whole(number: &Number) -> i64 {
    number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64)
}

/// Returns the value as kube-apiserver prints it in a string column: scalars as Go's `%v`, lists and objects as JSON. A
/// null inside the object is `<no value>`. Paths that find nothing are handled before.
fn print_value(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_f64() => strconv::format_float(number.as_f64().unwrap_or_default()),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => go::json(value),
    }
}
