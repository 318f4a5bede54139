//! What a CEL rule of a definition may cost at most, by the sizes that the schema allows: an upper bound that API servers put a
//! limit on. Reads an expression and its schema, hands on a number.
//!
//! The cost model is that of cel-go (`checker/cost.go`) with what `pkg/cel/library/cost.go` of apiserver adds. The tests
//! `definitions::costs` hold it to the recorded answers of the real server.

mod calls;
mod declared;
mod macros;
mod walk;

use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use self::declared::Declared;

/// Maximum estimated cost of one rule (`StaticEstimatedCostLimit` of apiextensions-apiserver).
pub const RULE_MAX: u64 = 10_000_000;
/// Maximum estimated cost of all rules of a version (`StaticEstimatedCRDCostLimit`).
pub const TOTAL_MAX: u64 = 100_000_000;

/// Estimates the maximum cost of one evaluation of an expression on a value of this schema. `is_whole` is for values with metadata:
/// whole objects and embedded resources.
///
/// ```
/// use kube_cel::cel::parser::Parser;
/// use serde_json::json;
///
/// let bounded = json!({ "type": "array", "maxItems": 10, "items": { "type": "integer" } });
/// let rule = Parser::default().parse("self.all(item, item > 0)").unwrap();
/// let cost = kctl_cel::estimate(&rule, &bounded, false);
/// let unbounded = json!({ "type": "array", "items": { "type": "integer" } });
/// assert!(cost < 100 && kctl_cel::estimate(&rule, &unbounded, false) > 10_000 * cost);
/// ```
pub fn estimate(expression: &IdedExpr, schema: &Value, is_whole: bool) -> u64 {
    walk::cost(expression, Declared::Schema(schema, is_whole))
}

/// How many values of a schema fit into a request: how often a rule runs where nothing else bounds that.
pub fn max_in_request(schema: &Value) -> u64 {
    declared::of(schema).count_max()
}
