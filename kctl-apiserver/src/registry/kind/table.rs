//! The columns and rows of a kind in a `Table`, as `kubectl get` prints it.
//!
//! The names of the columns are data (`data/columns.json`).

use jiff::Timestamp;
use serde_json::Value;

/// Returns the cells of an object's row in a `Table`.
pub(crate) type Printer = fn(&Value, Timestamp) -> Vec<Value>;
/// Returns the key by which the rows of a table are ordered.
pub(crate) type RowOrder = fn(&Value) -> (i64, &str);

/// The cells, conditions and order of the rows.
pub(crate) struct TableColumns {
    /// Returns the cells of a row. `None` for kinds whose tables have only the name and the creation time.
    pub(crate) printer: Option<Printer>,
    /// Returns the conditions of a row.
    pub(crate) conditions: fn(&Value) -> Option<Value>,
    /// Orders the rows; otherwise they are in the order of the list.
    pub(crate) order: Option<RowOrder>,
}

impl TableColumns {
    /// A table has only the name and the creation time.
    pub(crate) const DEFAULT: Self = Self { printer: None, conditions: |_| None, order: None };
}
