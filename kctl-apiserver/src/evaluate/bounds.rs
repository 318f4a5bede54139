//! Estimates the cost of a function from the sizes of its arguments, before the function runs. A function cannot be
//! interrupted, and its result must fit into memory; a call that upstream would cancel is not started.
//!
//! Upstream: `pkg/cel/library/cost.go` of apiserver, `ext/lists.go` and `interpreter/runtimecost.go` of `cel-go`.
//!
//! `cel/cost` charges the budget of a whole expression, by estimates before the
//! evaluation. The checks here see the actual values, so they catch results that grow during the
//! evaluation, such as strings that are concatenated in a loop.

use kube_cel::cel::Value as Cel;

use super::{
    EvalResult, Target,
    steps::{CHARS_PER_COST_UNIT, check_items},
    value_size,
};

/// Characters of a regular expression per unit of cost: 1 / `RegexStringLengthCostFactor` (0.25).
const PATTERN_CHARS_PER_COST_UNIT: usize = 4;

/// Functions that traverse their arguments completely, where a shared part counts once per occurrence.
const TRAVERSING_FUNCTIONS: [&str; 8] =
    ["contains", "distinct", "equivalent", "format", "indexOf", "intersects", "lastIndexOf", "string"];

/// Checks the estimated cost of a call.
///
/// # Errors
/// Returns [`super::EvaluationError::CostExceeded`] if the call alone exceeds the limit.
pub(super) fn check(name: &str, target: &Target<'_>, arguments: &[Cel]) -> EvalResult<()> {
    if TRAVERSING_FUNCTIONS.contains(&name) {
        value_size::check(target.value().into_iter().chain(arguments))?;
    }
    check_items(cost(name, target, arguments).unwrap_or_default())
}

/// Returns the estimated cost of a function; `None` if it is bounded by the size of the arguments. `distinct` compares
/// all pairs, and `sets` functions cost the product of both lists. `replace` and `join` cost the length of the result,
/// and regular expressions the product of string and pattern.
fn cost(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<usize> {
    Some(match (name, target, arguments) {
        ("distinct", Target::Value(Cel::List(items)), []) => items.len().saturating_mul(items.len()).saturating_mul(2),
        ("contains" | "intersects" | "equivalent", Target::Library("sets"), [Cel::List(left), Cel::List(right)]) => {
            left.len().saturating_mul(right.len())
        }
        ("range", Target::Library("lists"), [Cel::Int(n)]) => usize::try_from(*n).ok()?,
        ("replace", Target::Value(Cel::String(text)), [Cel::String(old), Cel::String(new), ..]) => {
            let n_found = if old.is_empty() { text.len() + 1 } else { text.matches(old.as_str()).count() };
            text.len().saturating_add(n_found.saturating_mul(new.len())) / CHARS_PER_COST_UNIT
        }
        ("join", Target::Value(Cel::List(items)), between) => {
            let length = |value: &Cel| if let Cel::String(text) = value { text.len() } else { 0 };
            let between = between.first().map_or(0, length);
            items.iter().map(|item| length(item).saturating_add(between)).fold(0, usize::saturating_add)
                / CHARS_PER_COST_UNIT
        }
        ("matches" | "find" | "findAll", Target::Value(Cel::String(text)), [Cel::String(pattern), ..]) => {
            let steps = (text.len() + 1).div_ceil(CHARS_PER_COST_UNIT);
            steps.saturating_mul(pattern.len().div_ceil(PATTERN_CHARS_PER_COST_UNIT))
        }
        _ => return None,
    })
}
