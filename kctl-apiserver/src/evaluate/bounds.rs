//! What a function of a library costs by the sizes of its values: what upstream would stop is not begun. Nothing here can be
//! stopped once it runs, and what it makes must fit into memory.
//!
//! Upstream: `pkg/cel/library/cost.go` of apiserver, `ext/lists.go` and `interpreter/runtimecost.go` of `cel-go`.

use kube_cel::cel::Value as Cel;

use super::{Target, weight};

/// What one expression may cost (`PerCallLimit`).
const COST_MAX: usize = 1_000_000;
/// A letter of a text costs the tenth part of a step.
const LETTERS_PER_STEP: usize = 10;
const PATTERN_LETTERS_PER_STEP: usize = 4;

/// Functions that walk over whole values, to compare them or to write them.
const WALKS: [&str; 8] =
    ["contains", "distinct", "equivalent", "format", "indexOf", "intersects", "lastIndexOf", "string"];

/// What is said of what costs too much.
pub(crate) const CANCELLED: &str = "operation cancelled: actual cost limit exceeded";

/// # Errors
/// It would cost too much.
pub(super) fn check(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Result<(), String> {
    if WALKS.contains(&name) {
        let target = if let Target::Value(value) = target { Some(value) } else { None };
        weight::check(target.into_iter().chain(arguments))?;
    }
    within(cost(name, target, arguments).unwrap_or_default())
}

/// # Errors
/// A text of so many bytes would cost too much.
pub(super) fn check_text(len: usize) -> Result<(), String> {
    within(text_steps(len))
}

/// Steps that a text of so many bytes costs.
pub(super) fn text_steps(len: usize) -> usize {
    len / LETTERS_PER_STEP
}

/// # Errors
/// So many items would cost too much.
pub(super) fn check_items(n: usize) -> Result<(), String> {
    within(n)
}

fn within(cost: usize) -> Result<(), String> {
    if cost > COST_MAX { Err(CANCELLED.to_owned()) } else { Ok(()) }
}

fn cost(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<usize> {
    Some(match (name, target, arguments) {
        ("distinct", Target::Value(Cel::List(items)), []) => items.len().saturating_mul(items.len()).saturating_mul(2),
        ("contains" | "intersects" | "equivalent", Target::Library("sets"), [Cel::List(one), Cel::List(other)]) => {
            one.len().saturating_mul(other.len())
        }
        ("range", Target::Library("lists"), [Cel::Int(n)]) => usize::try_from(*n).ok()?,
        ("replace", Target::Value(Cel::String(text)), [Cel::String(old), Cel::String(new), ..]) => {
            let n_found = if old.is_empty() { text.len() + 1 } else { text.matches(old.as_str()).count() };
            text.len().saturating_add(n_found.saturating_mul(new.len())) / LETTERS_PER_STEP
        }
        ("join", Target::Value(Cel::List(items)), between) => {
            let of = |value: &Cel| if let Cel::String(text) = value { text.len() } else { 0 };
            let between = between.first().map_or(0, of);
            items.iter().map(|item| of(item).saturating_add(between)).fold(0, usize::saturating_add) / LETTERS_PER_STEP
        }
        ("matches" | "find" | "findAll", Target::Value(Cel::String(text)), [Cel::String(pattern), ..]) => {
            let steps = (text.len() + 1).div_ceil(LETTERS_PER_STEP);
            steps.saturating_mul(pattern.len().div_ceil(PATTERN_LETTERS_PER_STEP))
        }
        _ => return None,
    })
}
