//! The `additionalPrinterColumns` of a `CustomResourceDefinition` and their cells.
//! Upstream: `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`. The cells of a custom resource are
//! those of its paths, by the type of the column:
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

use super::age::{INVALID, since_text};
use super::fields::{int, text};
use super::jsonpath::{ColumnPath, Found};
use crate::go;

/// A printer column after the name column.
pub(crate) struct Column {
    /// Decides how a value is printed.
    kind: Kind,
    /// The parsed `jsonPath`.
    path: ColumnPath,
    /// The `TableColumnDefinition` in the response.
    pub(super) definition: Value,
}

/// The type of a column, which decides how a value is printed.
#[derive(Clone, Copy)]
enum Kind {
    /// A whole number; the fraction of other numbers is truncated.
    Integer,
    /// Any number, unchanged.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any value, printed as a string.
    Text,
    /// A time of RFC 3339, shown as the time since then.
    Date,
    /// A type that the CRD should not have; its cells are null.
    Unknown,
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
            kind: Kind::parse(kind),
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
            Some(Found::Stored(value)) => self.kind.cell(value, now),
            Some(Found::Literal(value)) => self.kind.cell(&value, now),
            Some(Found::Plain(number)) if matches!(self.kind, Kind::Text) => json!(number.to_string()),
            Some(Found::Plain(_)) | None => Value::Null,
        }
    }
}

impl Kind {
    /// Returns the type by its name in the CRD.
    fn parse(text: &str) -> Self {
        match text {
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "string" => Self::Text,
            "date" => Self::Date,
            _ => Self::Unknown,
        }
    }

    /// Returns the cell for a value. An empty date, and the string `null`, are `<unknown>`.
    fn cell(self, value: &Value, now: Timestamp) -> Value {
        match (self, value) {
            (Self::Integer, Value::Number(number)) => json!(whole(number)),
            (Self::Number, Value::Number(_)) | (Self::Boolean, Value::Bool(_)) => value.clone(),
            (Self::Text, _) => json!(printed(value)),
            (Self::Date, Value::String(time)) if time.is_empty() || time == "null" => json!(since_text("", now)),
            (Self::Date, Value::String(time)) if time::parse(time).is_some() => json!(since_text(time, now)),
            (Self::Date, Value::String(_)) => json!(INVALID),
            _ => Value::Null,
        }
    }
}

/// Returns the number as an integer; a fraction is truncated. Numbers beyond 64 bits become the nearest bound.
#[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off, as the real server does")]
fn whole(number: &Number) -> i64 {
    number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64)
}

/// Returns the value as kube-apiserver prints it in a string column: scalars as Go's `%v`, lists and objects as JSON. A
/// null inside the object is `<no value>`. Paths that find nothing are handled before.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_f64() => strconv::format_float(number.as_f64().unwrap_or_default()),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => go::json(value),
    }
}
