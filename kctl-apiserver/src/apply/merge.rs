//! Merges the applied object into the live one, and removes fields. Values are read by their [`Position`].
//!
//! `merge` builds a new value; `merge_into` changes the live one and costs only as much as the applied part. Both give
//! the same result.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    field_set::{FieldSet, PathElement},
    shape::{Position, Shape},
    typed::{by_element, field, is_empty, names},
};
use crate::schema::ListType;

/// Returns the live value with all applied fields. An absent applied value keeps the live one: an apply removes fields
/// that its manager no longer owns, see `prune`. Atomic values are replaced as a whole.
pub(crate) fn merge(position: Position<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let present = applied.or(live)?;
    if live == applied {
        return Some(present.clone());
    }
    let shape = position.shape(present);
    match shape {
        Shape::Scalar(_) | Shape::List(ListType::Atomic) | Shape::Map { is_atomic: true } => Some(present.clone()),
        _ if is_empty(shape, live) && is_empty(shape, applied) => Some(present.clone()),
        Shape::List(list) => Some(Value::Array(merge_items(position, list, live, applied))),
        Shape::Map { is_atomic: false } => {
            let merged = names(live, applied).filter_map(|name| {
                let value = merge(position.field_position(name), field(live, name), field(applied, name))?;
                Some((name.clone(), value))
            });
            Some(Value::Object(merged.collect()))
        }
    }
}

/// Merges into the live value in place. Fields that are not applied are not visited. A list that has the same items in
/// the same order is merged in place, otherwise it is rebuilt.
pub(crate) fn merge_into(position: Position<'_>, live: &mut Value, applied: &Value) {
    let shape = position.shape(applied);
    match shape {
        Shape::Scalar(_) | Shape::List(ListType::Atomic) | Shape::Map { is_atomic: true } => {
            if live != applied {
                applied.clone_into(live);
            }
        }
        _ if is_empty(shape, Some(live)) && is_empty(shape, Some(applied)) => applied.clone_into(live),
        Shape::List(list) => {
            if live != applied && !merge_same_items(position, list, live, applied) {
                *live = Value::Array(merge_items(position, list, Some(live), Some(applied)));
            }
        }
        Shape::Map { is_atomic: false } => {
            let Value::Object(applied) = applied else { return };
            if !live.is_object() {
                *live = Value::Object(Map::new());
            }
            let Value::Object(live) = live else { return };
            for (name, value) in applied {
                let position = position.field_position(name);
                if let Some(live_value) = live.get_mut(name) {
                    merge_into(position, live_value, value);
                } else if let Some(value) = merge(position, None, Some(value)) {
                    live.insert(name.clone(), value);
                }
            }
        }
    }
}

/// Merges items in place if both lists have the same ones in the same order. Returns `false` without a change
/// otherwise.
fn merge_same_items(position: Position<'_>, list: ListType<'_>, live: &mut Value, applied: &Value) -> bool {
    let (Value::Array(live), Value::Array(applied)) = (live, applied) else { return false };
    let are_same = position.are_paired(list, live, applied);
    if are_same {
        live.iter_mut().zip(applied).for_each(|(live, applied)| merge_into(position.items(), live, applied));
    }
    are_same
}

/// Returns the items of a list with their elements, in order. Items without a valid element are left out; validation
/// has reported them.
fn in_order<'v>(position: Position<'_>, list: ListType<'_>, value: Option<&'v Value>) -> Vec<(PathElement, &'v Value)> {
    let items = value.and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((position.path_element(list, index, item).ok()?, item))).collect()
}

/// Merges two lists by item. Applied items keep their order. Live items that are not applied keep their place before
/// the next item that both lists have. Follows `mergingWalker.visitListItems` (structured-merge-diff, `typed/merge.go`)
/// step by step, because the result for a list with duplicate elements depends on the order of the steps.
fn merge_items(
    position: Position<'_>,
    list: ListType<'_>,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Vec<Value> {
    let by_live = by_element(position, list, live);
    let (live, applied) = (in_order(position, list, live), in_order(position, list, applied));
    let applied_elements: BTreeSet<&PathElement> = applied.iter().map(|(element, _)| element).collect();
    let mut shared = applied.iter().map(|(element, _)| element).filter(|element| by_live.contains_key(*element));
    let mut next_shared = shared.next();
    let mut merged = Vec::new();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let (mut rest_live, mut rest_applied) = (live.as_slice(), applied.as_slice());
    while !rest_live.is_empty() || !rest_applied.is_empty() {
        if let [(element, item), rest @ ..] = rest_live {
            let is_applied = applied_elements.contains(element);
            let is_first_applied = rest_applied.first().is_some_and(|(applied, _)| applied == element);
            // A shared item that occurs later is merged at its position in the applied list.
            let is_later = is_applied
                && !is_first_applied
                && !rest_applied.is_empty()
                && next_shared.is_some_and(|next| next != element);
            if !is_applied {
                merged.extend(merge(position.items(), Some(item), None));
            }
            if !is_applied || is_later {
                rest_live = rest;
                continue;
            }
            // After an item that was merged already, the next applied item follows in the same step.
            if is_first_applied || done.contains(element) {
                rest_live = rest;
            }
        }
        let [(element, item), rest @ ..] = rest_applied else { continue };
        // Duplicate live items are replaced by the applied one.
        let live_item = by_live
            .get(element)
            .and_then(|items| if let [live_item] = items.as_slice() { Some(*live_item) } else { None });
        merged.extend(merge(position.items(), live_item, Some(item)));
        done.insert(element);
        rest_applied = rest;
        if next_shared == Some(element) {
            next_shared = shared.next();
        }
    }
    merged
}

/// Returns the value without the fields of the set; `null` if nothing is left. Custom resources are stored with that
/// `null`; for built-in kinds it counts as absent. Used by `prune` with the fields that a manager gave up.
pub(crate) fn remove_items(position: Position<'_>, value: &Value, set: &FieldSet) -> Value {
    match (position.shape(value), value) {
        (Shape::Scalar(_), _) => value.clone(),
        (Shape::List(list), Value::Array(_)) if list != ListType::Atomic => {
            let left = in_order(position, list, Some(value)).into_iter();
            let left = left.filter_map(|(element, item)| without_fields(position.items(), item, &element, set));
            Some(left.collect::<Vec<_>>()).filter(|left| !left.is_empty()).map_or(Value::Null, Value::Array)
        }
        (Shape::Map { is_atomic: false }, Value::Object(fields)) => {
            let left = fields.iter().filter_map(|(name, value)| {
                let rest = without_fields(position.field_position(name), value, &PathElement::field(name), set)?;
                Some((name.clone(), rest))
            });
            Some(left.collect::<Map<_, _>>()).filter(|left| !left.is_empty()).map_or(Value::Null, Value::Object)
        }
        _ => Value::Null,
    }
}

/// Returns the value of an element without the fields of the set, or `None` if it is removed. The element itself may be
/// in the set, or only paths below it.
fn without_fields(position: Position<'_>, value: &Value, element: &PathElement, set: &FieldSet) -> Option<Value> {
    if set.contains(std::slice::from_ref(element)) {
        return None;
    }
    let Some(below) = set.with_prefix(element) else { return Some(value.clone()) };
    Some(remove_items(position, value, below))
}

/// Returns the set, extended by each field of the schema that has a path of the set below it. A manager owns such a
/// field through its children: the field is removed together with the last child.
pub(crate) fn with_named_fields(position: Position<'_>, set: &FieldSet) -> FieldSet {
    let mut all = set.clone();
    for (element, below) in set.children() {
        if element.field_name().is_some_and(|name| position.names_field(name)) {
            all.insert(std::slice::from_ref(element));
        }
        all.replace_below(element, with_named_fields(position.step(element), below));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{apply::typed::compare, clock::Rng, schema::Schema};

    fn one_of(rng: &mut Rng, values: &[Value]) -> Value {
        let index = usize::try_from(rng.next() % values.len() as u64).unwrap();
        values[index].clone()
    }

    /// The names of the containers of a random Pod.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Names {
        Distinct,
        /// Some names may occur twice, as in objects of a time before the API server checked them.
        MayRepeat,
    }

    /// Returns a Pod with a random subset of a few fields.
    fn pod(rng: &mut Rng, container_names: Names) -> Value {
        let mut containers = Vec::new();
        let mut names = vec!["a", "b", "c"];
        while !names.is_empty() && !rng.next().is_multiple_of(4) {
            let index = usize::try_from(rng.next() % names.len() as u64).unwrap();
            let repeats = container_names == Names::MayRepeat && rng.next().is_multiple_of(8);
            let name = if repeats { names[index] } else { names.remove(index) };
            let mut container = json!({ "name": name });
            let ports = [
                json!([]),
                json!(null),
                json!([{ "containerPort": 1 }, { "containerPort": 2, "name": "x" }]),
                json!([{ "containerPort": 2, "protocol": "UDP" }, { "containerPort": 2 }]),
            ];
            for (field, values) in [
                ("image", &[json!("i"), json!("j")][..]),
                ("ports", &ports[..]),
                ("args", &[json!(["x"]), json!(["y", "z"]), json!([])][..]),
                (
                    "resources",
                    &[json!({}), json!({ "limits": { "cpu": "1" } }), json!({ "limits": { "memory": "2" } })][..],
                ),
            ] {
                if rng.next().is_multiple_of(2) {
                    container[field] = one_of(rng, values);
                }
            }
            containers.push(container);
        }
        let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": containers } });
        let labels = [json!({ "a": "1" }), json!({ "a": "2", "b": null }), json!({}), json!(null)];
        pod["metadata"] = json!({ "labels": one_of(rng, &labels), "finalizers": one_of(rng, &[
            json!(["a/a", "b/b"]), json!(["b/b", "a/a"]), json!(["c/c"]), json!([]),
        ]) });
        pod
    }

    #[test]
    fn merging_on_the_live_value_is_merging() {
        let position = Position::root(Schema::built_in("v1", "Pod"));
        let mut rng = Rng::new(7);
        for _ in 0..20_000 {
            let (live, applied) = (pod(&mut rng, Names::MayRepeat), pod(&mut rng, Names::Distinct));
            let mut merged = live.clone();
            merge_into(position, &mut merged, &applied);
            assert_eq!(Some(merged), merge(position, Some(&live), Some(&applied)), "{live} with {applied}");
        }
    }

    #[test]
    fn keyed_items_compare_in_any_order() {
        let position = Position::root(Schema::built_in("v1", "Pod"));
        let mut rng = Rng::new(11);
        for _ in 0..20_000 {
            let (old, new) = (pod(&mut rng, Names::Distinct), pod(&mut rng, Names::Distinct));
            let mut turned = new.clone();
            turned["spec"]["containers"].as_array_mut().into_iter().for_each(|all| all.reverse());
            assert_eq!(compare(position, &old, &new), compare(position, &old, &turned), "{old} and {new}");
        }
    }
}
