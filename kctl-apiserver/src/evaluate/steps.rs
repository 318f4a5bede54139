//! Units of cost for traversing strings and lists, and the limit of one call.

use super::{EvalResult, EvaluationError};

/// Cost limit of one call. Upstream counts all calls of an expression together (`PerCallLimit`); one call above the
/// limit always exceeds it.
const COST_MAX: usize = 1_000_000;
/// Characters per unit of cost of traversing a string: 1 / `StringTraversalCostFactor` (0.1).
pub(super) const CHARS_PER_COST_UNIT: usize = 10;

/// Checks the cost of creating a string of `len` bytes.
///
/// # Errors
/// Returns [`EvaluationError::CostExceeded`] if it exceeds [`COST_MAX`].
pub(super) fn check_text(len: usize) -> EvalResult<()> {
    check_items(text_steps(len))
}

/// Returns the cost of traversing a string of `len` bytes.
///
/// Rounded down: short strings are free.
pub(super) fn text_steps(len: usize) -> usize {
    len / CHARS_PER_COST_UNIT
}

/// Checks the cost of creating or traversing `n` items. One item costs one unit.
///
/// # Errors
/// Returns [`EvaluationError::CostExceeded`] if it exceeds [`COST_MAX`].
pub(super) fn check_items(n: usize) -> EvalResult<()> {
    if n > COST_MAX { Err(EvaluationError::CostExceeded) } else { Ok(()) }
}
