//! Functions of lists that add, compare or write their items. Upstream: `pkg/cel/library/lists.go` of apiserver, and
//! `ext/strings.go` of `cel-go`.
//!
//! These functions take the list as a whole. Macros over lists, whose argument is an expression, are in `loops`.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::Value as Cel;

use super::{EvalResult, NO_OVERLOAD, operators, type_name};

/// Returns the result of a list function; `None` for other functions.
pub(super) fn call(name: &str, items: &[Cel], arguments: &[Cel]) -> Option<EvalResult> {
    Some(match (name, arguments) {
        ("sum", []) => sum(items),
        ("min", []) => min_or_max(name, items, Ordering::Less),
        ("max", []) => min_or_max(name, items, Ordering::Greater),
        ("isSorted", []) => {
            let is_over = |two: &[Cel]| operators::order(&two[0], &two[1]) == Some(Ordering::Greater);
            Ok(Cel::Bool(!items.windows(2).any(is_over)))
        }
        ("sort", []) if items.iter().any(|item| type_name(item) != type_name(&items[0])) => {
            Err("list elements must have the same type".into())
        }
        ("sort", []) => {
            let mut items = items.to_vec();
            items.sort_by(sort_order);
            Ok(Cel::List(Arc::new(items)))
        }
        ("join", []) => join(items, ""),
        ("join", [Cel::String(between)]) => join(items, between),
        ("slice", [Cel::Int(from), Cel::Int(to)]) => slice(items, *from, *to),
        _ => return None,
    })
}

/// Compares two items of one type for a sort, which may panic without a total order: NaN comes last. Items of a type
/// without an order are equal.
fn sort_order(left: &Cel, right: &Cel) -> Ordering {
    let is_nan = |value: &Cel| matches!(value, Cel::Float(number) if number.is_nan());
    operators::order(left, right).unwrap_or_else(|| is_nan(left).cmp(&is_nan(right)))
}

/// Adds the items. The type of the first item selects the zero; the sum of an empty list is the integer 0.
fn sum(items: &[Cel]) -> EvalResult {
    let nothing = match items.first() {
        Some(Cel::UInt(_)) => Cel::UInt(0),
        Some(Cel::Float(_)) => Cel::Float(0.0),
        Some(Cel::Duration(_)) => Cel::Duration(chrono::TimeDelta::zero()),
        _ => Cel::Int(0),
    };
    items.iter().try_fold(nothing, |sum, item| {
        operators::number_arithmetic("_+_", &sum, item).unwrap_or_else(|| Err(NO_OVERLOAD.into()))
    })
}

/// Returns the first item that no other item precedes (`min`) or follows (`max`). Items that cannot be compared count
/// as equal.
fn min_or_max(name: &str, items: &[Cel], direction: Ordering) -> EvalResult {
    let mut all = items.iter();
    let first = all.next().ok_or_else(|| format!("{name} called on empty list"))?;
    let found =
        all.fold(first, |found, item| if operators::order(item, found) == Some(direction) { item } else { found });
    Ok(found.clone())
}

/// Joins strings. `bounds` has checked the size.
fn join(items: &[Cel], between: &str) -> EvalResult {
    let text = |item: &Cel| match item {
        Cel::String(text) => Ok(text.to_string()),
        other => Err(format!("join: items must be strings, found {}", type_name(other)).into()),
    };
    let texts: EvalResult<Vec<String>> = items.iter().map(text).collect();
    Ok(Cel::String(Arc::new(texts?.join(between))))
}

/// Returns the items from index `from` up to but excluding `to`.
fn slice(items: &[Cel], from: i64, to: i64) -> EvalResult {
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let slice = range.and_then(|(first, end)| items.get(first..end));
    let invalid = || format!("slice({from}, {to}): not within the {} items of the list", items.len()).into();
    slice.map(|items| Cel::List(Arc::new(items.to_vec()))).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_that_are_not_numbers_are_sorted_last() {
        let items = [2.0, f64::NAN, 1.0, f64::NAN, 0.0].map(Cel::Float);
        let Some(Ok(Cel::List(sorted))) = call("sort", &items, &[]) else { panic!("a list is sorted") };
        assert_eq!(sorted[..3], [0.0, 1.0, 2.0].map(Cel::Float));
        assert_eq!(sorted.len(), items.len());
    }
}
