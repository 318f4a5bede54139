//! The estimated maximum cost of a validation rule, from the sizes that the schema allows.
//!
//! API servers reject a CRD whose rules exceed a limit. `estimator` walks through the expression, `calls` and `macros`
//! contain the costs of functions and macros, and `value_schema` derives sizes from `maxLength`, `maxItems` and the
//! like.
//!
//! The cost model comes from cel-go (`checker/cost.go`) with what `pkg/cel/library/cost.go` of apiserver adds. The
//! tests `definitions::costs` compare it with recorded responses of kube-apiserver.

mod calls;
mod estimator;
mod macros;
mod value_schema;

use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use self::value_schema::ValueSchema;
use crate::SchemaOf;

/// Maximum estimated cost of one rule, times the number of values that it runs on (`StaticEstimatedCostLimit` of apiextensions-apiserver).
pub const RULE_MAX: u64 = 10_000_000;
/// Maximum sum of the costs of all rules of a version (`StaticEstimatedCRDCostLimit`).
pub const TOTAL_MAX: u64 = 100_000_000;

/// Estimates the maximum cost of one evaluation of an expression on a value of this schema.
///
/// The unit is the same as in cel-go: about one operation. A result of `u64::MAX` means that it has no bound.
///
/// ```
/// use kctl_cel::SchemaOf;
/// use kube_cel::cel::parser::Parser;
/// use serde_json::json;
///
/// let bounded = json!({ "type": "array", "maxItems": 10, "items": { "type": "integer" } });
/// let rule = Parser::default().parse("self.all(item, item > 0)").unwrap();
/// let cost = kctl_cel::estimate(&rule, &bounded, SchemaOf::Value);
/// let unbounded = json!({ "type": "array", "items": { "type": "integer" } });
/// assert!(cost < 100 && kctl_cel::estimate(&rule, &unbounded, SchemaOf::Value) > 10_000 * cost);
/// ```
pub fn estimate(expression: &IdedExpr, schema: &Value, of: SchemaOf) -> u64 {
    estimator::cost(expression, ValueSchema::Schema(schema, of.or_embedded(schema)))
}

/// Returns the number of values of a schema that fit into a request of 3 MiB.
///
/// A rule below an array or map without `maxItems` or `maxProperties` runs at most that often.
///
/// ```
/// use serde_json::json;
///
/// // `true,` has five bytes:
/// assert_eq!(kctl_cel::max_in_request(&json!({ "type": "boolean" })), 3 * 1024 * 1024 / 5);
/// ```
pub fn max_in_request(schema: &Value) -> u64 {
    value_schema::for_value(schema).count_max()
}
