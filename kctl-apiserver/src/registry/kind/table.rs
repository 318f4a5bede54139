//! The rows of a kind in a `Table`, as `kubectl get` prints them.
//!
//! The names of the columns are data (`data/columns.json`).
//!
//! Upstream: `print<Kind>` in `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::Value;

/// One cell of a row. Strings that begin with a slash are JSON pointers; a missing field reads as empty.
#[derive(Clone, Copy)]
pub(crate) enum Cell {
    /// The object's `metadata.name`.
    Name,
    /// The name, followed by ` (default)` if one of the annotations is `true`.
    ClassName(&'static [&'static str]),
    /// The time since the creation, as `5m`.
    Age,
    /// A string.
    Text(&'static str),
    /// A string, or the second one if the field is missing or empty.
    TextOr(&'static str, &'static str),
    /// An integer; 0 if it is missing.
    Int(&'static str),
    /// An integer, or the string if it is missing.
    IntOr(&'static str, &'static str),
    /// An int-or-string or a quantity as a string, or the second string if it is missing.
    ScalarOr(&'static str, &'static str),
    /// A boolean; `false` if it is missing.
    Flag(&'static str),
    /// The number of items of a list, or of keys of a map.
    Count(&'static str),
    /// The strings of a list joined by commas. The second pointer leads from an item to its string.
    Joined(&'static str, &'static str),
    /// As `Joined`, or the last string if the list is empty.
    JoinedOr(&'static str, &'static str, &'static str),
    /// The time since a timestamp, or the string if it is missing.
    SinceOr(&'static str, &'static str),
    /// The names of the containers of a Pod template, joined by commas.
    Containers(&'static str),
    /// The images of the containers of a Pod template, joined by commas.
    Images(&'static str),
    /// Labels as `a=b,c=d` or a label selector in query syntax; `<none>` if it is empty.
    Labels(&'static str),
    /// A function of the object and the current time.
    Computed(fn(&Value, Timestamp) -> Value),
}

/// The cells of an object's row.
#[derive(Clone, Copy)]
pub(crate) enum Printer {
    /// Each cell is described on its own.
    Cells(&'static [Cell]),
    /// A function returns all cells, for kinds whose cells depend on each other.
    Function(fn(&Value, Timestamp) -> Vec<Value>),
}

/// Returns the key that orders the rows of a table.
pub(crate) type RowOrder = fn(&Value) -> (i64, &str);

/// The cells, conditions and order of the rows.
pub(crate) struct TableColumns {
    /// The cells of a row. `None` for kinds whose tables have only the name and the creation time.
    pub(crate) printer: Option<Printer>,
    /// Returns the conditions of a row.
    pub(crate) conditions: fn(&Value) -> Option<Value>,
    /// Orders the rows; otherwise they are in the order of the list.
    pub(crate) order: Option<RowOrder>,
}

impl TableColumns {
    /// A table has only the name and the creation time.
    pub(crate) const DEFAULT: Self = Self { printer: None, conditions: |_| None, order: None };

    /// Creates a table whose rows have these cells.
    pub(crate) const fn cells(cells: &'static [Cell]) -> Self {
        Self { printer: Some(Printer::Cells(cells)), ..Self::DEFAULT }
    }

    /// Creates a table whose rows have the cells that the function returns.
    pub(crate) const fn printer(printer: fn(&Value, Timestamp) -> Vec<Value>) -> Self {
        Self { printer: Some(Printer::Function(printer)), ..Self::DEFAULT }
    }
}
