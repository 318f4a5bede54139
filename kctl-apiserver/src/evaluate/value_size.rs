//! Measures values that share parts: `[a, a]` stores `a` once, but a traversal visits it twice.
//!
//! Thirty variables that each contain the previous one twice take little memory, but form a tree of a billion nodes.
//! Traversals of whole values (equality, `format`, JSON) are therefore bounded by the size of the tree. Variables are
//! also bounded in depth, because traversals recurse.
//!
//! Measuring visits each shared list or map once, by its address, so its cost is proportional to the memory that the
//! value takes.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::Value as Cel;

use super::{EvalResult, EvaluationError, steps};
use crate::decode::DEPTH_MAX;

/// The number of nodes of a tree, counting shared parts each time, and its depth.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// Saturating. A string counts one step, plus one for each ten bytes.
    steps: usize,
    /// 0 for scalars.
    depth: usize,
}

/// Checks that values can be traversed.
///
/// Each value is checked on its own: two values at the limit are allowed.
///
/// # Errors
/// Returns [`EvaluationError::CostExceeded`] if the traversal of one value would exceed the cost limit of an expression.
pub(crate) fn check<'a>(values: impl IntoIterator<Item = &'a Cel>) -> EvalResult<()> {
    values.into_iter().try_for_each(|value| steps::check_items(extent(value, &mut HashMap::new()).steps))
}

/// Checks a value before it is stored in a variable.
///
/// # Errors
/// Returns [`EvaluationError::CostExceeded`] if the value is too large or deeper than decoded objects may be. Other
/// expressions can nest variables, so their depth is bounded, too.
pub(crate) fn check_variable(value: &Cel) -> EvalResult<()> {
    let Extent { steps, depth } = extent(value, &mut HashMap::new());
    if depth > DEPTH_MAX { Err(EvaluationError::CostExceeded) } else { steps::check_items(steps) }
}

/// Measures a tree by visiting each shared part once. `measured` maps addresses to results; it is valid only while the
/// values live.
fn extent(value: &Cel, measured: &mut HashMap<usize, Extent>) -> Extent {
    let extent_of = |parts: &mut dyn Iterator<Item = &Cel>, measured: &mut HashMap<usize, Extent>| {
        let whole = Extent { steps: 1, depth: 1 };
        parts.fold(whole, |whole, part| {
            let part = extent(part, measured);
            Extent { steps: whole.steps.saturating_add(part.steps), depth: whole.depth.max(part.depth + 1) }
        })
    };
    let address = match value {
        Cel::List(items) => Arc::as_ptr(items).addr(),
        Cel::Map(map) => Arc::as_ptr(&map.map).addr(),
        Cel::String(text) => return Extent { steps: 1 + steps::text_steps(text.len()), depth: 0 },
        Cel::Bytes(bytes) => return Extent { steps: 1 + steps::text_steps(bytes.len()), depth: 0 },
        _ => return Extent { steps: 1, depth: 0 },
    };
    if let Some(extent) = measured.get(&address) {
        return *extent;
    }
    let extent = match value {
        Cel::List(items) => extent_of(&mut items.iter(), measured),
        Cel::Map(map) => extent_of(&mut map.map.values(), measured),
        _ => Extent::default(),
    };
    measured.insert(address, extent);
    extent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled(levels: usize) -> Cel {
        (0..levels).fold(Cel::Int(1), |value, _| Cel::List(Arc::new(vec![value.clone(), value])))
    }

    #[test]
    fn shared_parts_count_each_time_they_are_met() {
        assert_eq!(check([&doubled(18)]), Ok(()));
        assert_eq!(check([&doubled(20)]), Err(EvaluationError::CostExceeded));
        // Measuring takes one step per distinct part, not one per node of the tree.
        assert_eq!(check([&Cel::Null, &doubled(200)]), Err(EvaluationError::CostExceeded));
        assert_eq!(check([&Cel::String(Arc::new("x".repeat(9_000_000)))]), Ok(()));
        assert_eq!(check([&Cel::String(Arc::new("x".repeat(11_000_000)))]), Err(EvaluationError::CostExceeded));
    }

    #[test]
    fn variables_are_as_deep_as_objects_may_be() {
        let deep = |levels| (0..levels).fold(Cel::Int(1), |value, _| Cel::List(Arc::new(vec![value])));
        assert_eq!(check_variable(&deep(DEPTH_MAX)), Ok(()));
        assert_eq!(check_variable(&deep(DEPTH_MAX + 1)), Err(EvaluationError::CostExceeded));
        assert_eq!(check([&deep(DEPTH_MAX + 1)]), Ok(()));
    }
}
