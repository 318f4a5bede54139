//! Merging of what is applied into what is live, and removal of fields. Reads values by their [`Place`], hands on new values.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    field_set::{FieldSet, PathElement},
    shape::{Place, Shape},
    typed::{by_element, field, is_empty, names},
};
use crate::schema::ListType;

/// The live value with all that is applied.
pub fn merge(place: Place<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let one = applied.or(live)?;
    match place.shape(one) {
        Shape::Scalar(_) | Shape::List(ListType::Atomic) | Shape::Map { is_atomic: true } => Some(one.clone()),
        _ if is_empty(live) && is_empty(applied) => Some(one.clone()),
        Shape::List(list) => Some(Value::Array(merge_items(place, list, live, applied))),
        Shape::Map { is_atomic: false } => {
            let merged = names(live, applied).into_iter().filter_map(|name| {
                let value = merge(place.field_place(name), field(live, name), field(applied, name))?;
                Some((name.clone(), value))
            });
            Some(Value::Object(merged.collect()))
        }
    }
}

/// Items of a list with the steps to them, in order.
fn in_order<'v>(place: Place<'_>, list: ListType<'_>, value: Option<&'v Value>) -> Vec<(PathElement, &'v Value)> {
    let items = value.and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((place.element(list, index, item).ok()?, item))).collect()
}

/// Applied items keep their order; live items that are not applied keep their place before the shared item that
/// follows them.
fn merge_items(place: Place<'_>, list: ListType<'_>, live: Option<&Value>, applied: Option<&Value>) -> Vec<Value> {
    let by_live = by_element(place, list, live);
    let (live, applied) = (in_order(place, list, live), in_order(place, list, applied));
    let applied_elements: BTreeSet<&PathElement> = applied.iter().map(|(element, _)| element).collect();
    let mut shared =
        applied.iter().map(|(element, _)| element).filter(|element| by_live.contains_key(*element)).peekable();
    let mut merged = Vec::new();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let (mut rest_live, mut rest_applied) = (live.as_slice(), applied.as_slice());
    loop {
        if let [(element, item), rest @ ..] = rest_live {
            if !applied_elements.contains(element) {
                merged.extend(merge(place.items(), Some(item), None));
                rest_live = rest;
                continue;
            }
            // A shared item whose turn is later, or was before: it is merged where it is applied.
            let is_next = shared.peek() == Some(&element);
            if done.contains(element) || (!is_next && !rest_applied.is_empty() && shared.peek().is_some()) {
                rest_live = rest;
                continue;
            }
        }
        let [(element, item), rest @ ..] = rest_applied else {
            if rest_live.is_empty() {
                return merged;
            }
            rest_live = &rest_live[1..];
            continue;
        };
        // Items that are live more than once are replaced.
        let one = by_live.get(element).and_then(|items| if let [one] = items.as_slice() { Some(*one) } else { None });
        merged.extend(merge(place.items(), one, Some(item)));
        done.insert(element);
        rest_applied = rest;
        if rest_live.first().is_some_and(|(live, _)| live == element) {
            rest_live = &rest_live[1..];
        }
        if shared.peek() == Some(&element) {
            shared.next();
        }
    }
}

/// What becomes of an object or list of which nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// It is null, as in stored custom resources.
    Null,
    /// It is removed, as built-in kinds do not say null for an empty map or list.
    Removed,
}

/// The value without the fields of the set; null when nothing is left.
pub fn remove_items(place: Place<'_>, value: &Value, set: &FieldSet, emptied: Emptied) -> Value {
    match (place.shape(value), value) {
        (Shape::Scalar(_), _) => value.clone(),
        (Shape::List(list), Value::Array(_)) if list != ListType::Atomic => {
            let left = in_order(place, list, Some(value)).into_iter();
            let left = left.filter_map(|(element, item)| rest_of(place.items(), item, &element, set, emptied));
            Some(left.collect::<Vec<_>>()).filter(|left| !left.is_empty()).map_or(Value::Null, Value::Array)
        }
        (Shape::Map { is_atomic: false }, Value::Object(fields)) => {
            let left = fields.iter().filter_map(|(name, value)| {
                let rest = rest_of(place.field_place(name), value, &PathElement::field(name), set, emptied)?;
                Some((name.clone(), rest))
            });
            Some(left.collect::<Map<_, _>>()).filter(|left| !left.is_empty()).map_or(Value::Null, Value::Object)
        }
        _ => Value::Null,
    }
}

fn rest_of(place: Place<'_>, value: &Value, element: &PathElement, set: &FieldSet, emptied: Emptied) -> Option<Value> {
    if set.contains(std::slice::from_ref(element)) {
        return None;
    }
    let Some(below) = set.below(element) else { return Some(value.clone()) };
    let rest = remove_items(place, value, below, emptied);
    let is_emptied = rest.is_null() && !value.is_null();
    (!is_emptied || emptied == Emptied::Null).then_some(rest)
}

/// The set with every field that the schema names and below which the set has paths.
///
/// Such a field is owned through what is below it, so it goes with the last of it.
pub fn with_named_fields(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let mut all = set.clone();
    for (element, below) in set.children() {
        if element.field_name().is_some_and(|name| place.names_field(name)) {
            all.insert(std::slice::from_ref(element));
        }
        all.replace_below(element, with_named_fields(place.step(element), below));
    }
    all
}
