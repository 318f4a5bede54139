//! What a rule may cost at most, by the sizes that the schema allows: an upper bound that API servers put a limit on. Reads a
//! rule and its schema, hands on a number.
//!
//! The cost model is that of cel-go (`checker/cost.go`) with what `pkg/cel/library/cost.go` of apiserver adds. The embedded API
//! server has the same for itself, since a judge shares no code with whom it judges: both are held to the recorded answers
//! of the real one.

mod calls;
mod declared;
mod macros;
mod walk;

use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use self::declared::Declared;

/// What one rule may cost (`StaticEstimatedCostLimit` of apiextensions-apiserver).
pub(super) const RULE_MAX: u64 = 10_000_000;
/// What all rules of a version may cost (`StaticEstimatedCRDCostLimit`).
pub(super) const TOTAL_MAX: u64 = 100_000_000;
pub(super) const HELP: &str = "say how many there can be: `max_items`, `max_properties` and `max_length` on the fields that it reads and on the lists above";

/// How many times a cost is over its limit.
#[expect(clippy::cast_precision_loss, reason = "it is for people to read")]
pub(super) fn factor(cost: u64, limit: u64) -> f64 {
    cost as f64 / limit as f64
}

/// The most that an evaluation costs; `is_whole` says whether the values have metadata of their own.
pub(super) fn estimate(expression: &IdedExpr, schema: &Value, is_whole: bool) -> u64 {
    walk::cost(expression, Declared::Schema(schema, is_whole))
}

/// How many values of a schema fit into a request.
pub(super) fn max_in_request(schema: &Value) -> u64 {
    declared::of(schema).count_max()
}
