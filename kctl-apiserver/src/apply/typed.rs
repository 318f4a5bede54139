//! The field set of a value, and the comparison of two values: field ownership is computed from them.
//!
//! Upstream: `typed/tofieldset.go` and `typed/compare.go` of structured-merge-diff.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    field_set::{FieldSet, Path, PathElement},
    shape::{FieldPosition, Position, Shape},
};
use crate::schema::ListType;

/// The paths in which a new value differs from an old one. Each path is in one set at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Paths that only the new value has.
    pub added: FieldSet,
    /// Paths that both have, with different values.
    pub modified: FieldSet,
    /// Paths that only the old value has.
    pub removed: FieldSet,
}

/// Returns the fields that a manager owns after it applied a value: leaves, list items and map entries. The root itself
/// is not in the set.
pub(crate) fn field_set(position: Position<'_>, value: &Value) -> FieldSet {
    match position.shape(value) {
        Shape::List(list) if list != ListType::Atomic => set_of_items(position, list, value),
        Shape::Map { is_atomic: false } => set_of_fields(position, value),
        _ => FieldSet::default(),
    }
}

/// Returns `true` if a value is owned as a whole.
fn is_leaf(position: Position<'_>, value: &Value) -> bool {
    matches!(position.shape(value), Shape::Scalar(_) | Shape::List(ListType::Atomic) | Shape::Map { is_atomic: true })
}

/// Returns the set of an object's fields. A declared field with children is not a member: it is owned through them.
fn set_of_fields(position: Position<'_>, value: &Value) -> FieldSet {
    let steps = value.as_object().into_iter().flatten().map(|(name, value)| {
        let (below, is_named) = match position.field(name) {
            FieldPosition::Named(below) => (below, true),
            FieldPosition::Entry(below) => (below, false),
            FieldPosition::Undeclared => (Position::UNKNOWN, false),
        };
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let is_member = is_leaf(below, value) || is_empty || !is_named;
        (PathElement::field(name), is_member, field_set(below, value))
    });
    steps.collect()
}

/// Returns the set of a list's items.
fn set_of_items(position: Position<'_>, list: ListType<'_>, value: &Value) -> FieldSet {
    let items = value.as_array().into_iter().flatten().enumerate();
    let found = items.filter_map(|(index, item)| Some((position.path_element(list, index, item).ok()?, item)));
    let mut found: Vec<(PathElement, &Value)> = found.collect();
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    let steps = found.chunk_by(|(left, _), (right, _)| left == right).filter_map(|same| {
        let (element, item) = same.first()?;
        // Duplicate items are owned as one value.
        let below = if same.len() == 1 { field_set(position.items(), item) } else { FieldSet::default() };
        Some((element.clone(), true, below))
    });
    steps.collect()
}

/// Returns the items of a list by their elements. Items without a valid element are left out.
pub(super) fn by_element<'v>(
    position: Position<'_>,
    list: ListType<'_>,
    value: Option<&'v Value>,
) -> BTreeMap<PathElement, Vec<&'v Value>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, item) in value.and_then(Value::as_array).into_iter().flatten().enumerate() {
        if let Ok(element) = position.path_element(list, index, item) {
            found.entry(element).or_default().push(item);
        }
    }
    found
}

/// Compares two objects, except for `metadata.managedFields`. Where shapes differ, the paths are from the new shape.
pub(crate) fn compare(position: Position<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparer = Comparer { path: Vec::new(), found: Comparison::default() };
    comparer.visit(position, Some(old), Some(new));
    comparer.found
}

/// Returns `true` if two values are equal; `1` and `1.0` are equal.
pub(crate) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| is_equal(left, right)))
        }
        _ => left == right,
    }
}

/// Returns `true` if a value has no fields or items to descend into.
pub(super) fn is_empty(shape: Shape<'_>, value: Option<&Value>) -> bool {
    match (shape, value) {
        (Shape::List(_), Some(Value::Array(items))) => items.is_empty(),
        (Shape::Map { .. }, Some(Value::Object(fields))) => fields.is_empty(),
        _ => true,
    }
}

/// Returns the names of the fields of either object, each once, in order: sets of paths are built from them, which
/// would move their entries for each name out of order.
pub(super) fn names<'v>(left: Option<&'v Value>, right: Option<&'v Value>) -> impl Iterator<Item = &'v String> {
    let (left, right) = (left.and_then(Value::as_object), right.and_then(Value::as_object));
    let only_right = right.into_iter().flat_map(Map::keys);
    let only_right = only_right.filter(move |name| !left.is_some_and(|left| left.contains_key(*name)));
    let mut names: Vec<&String> = left.into_iter().flat_map(Map::keys).chain(only_right).collect();
    names.sort();
    names.into_iter()
}

/// Compares two values recursively. Depth is bounded by the depth of decoded objects.
struct Comparer {
    /// The path of the present position.
    path: Path,
    /// The differences so far.
    found: Comparison,
}

impl Comparer {
    /// Compares two values at a position. A value whose shape changed, such as a list that replaces a map, is visited
    /// once per shape. Its old children are removed, and the new ones are added.
    fn visit(&mut self, position: Position<'_>, old: Option<&Value>, new: Option<&Value>) {
        // Most parts of an object are unchanged.
        if old == new {
            return;
        }
        let old_shape = old.map(|old| position.shape(old));
        let new_shape = new.map(|new| position.shape(new));
        let Some(shape) = new_shape.or(old_shape) else { return };
        if let Some(old_shape) = old_shape.filter(|old_shape| *old_shape != shape) {
            self.visit_as(old_shape, position, old, new);
        }
        if self.visit_as(shape, position, old, new) {
            match (old, new) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares two values of this shape. Returns `true` if it compared their children, not the values as a whole.
    fn visit_as(&mut self, shape: Shape<'_>, position: Position<'_>, old: Option<&Value>, new: Option<&Value>) -> bool {
        let is_leaf = match shape {
            Shape::Scalar(_) | Shape::List(ListType::Atomic) | Shape::Map { is_atomic: true } => true,
            // An absent value and an empty one differ.
            _ => is_empty(shape, old) && is_empty(shape, new),
        };
        match shape {
            _ if is_leaf => self.leaf(old, new),
            Shape::List(list) => self.visit_items(position, list, old, new),
            _ => {
                for name in names(old, new) {
                    let (old, new) = (field(old, name), field(new, name));
                    if old == new || self.leads_to_managed_fields(name) {
                        continue;
                    }
                    self.path.push(PathElement::field(name));
                    self.visit(position.field_position(name), old, new);
                    self.path.pop();
                }
            }
        }
        !is_leaf
    }

    /// Returns `true` for `metadata.managedFields`, which is not compared.
    fn leads_to_managed_fields(&self, name: &str) -> bool {
        let [parent] = self.path.as_slice() else { return false };
        name == "managedFields" && parent.field_name() == Some("metadata")
    }

    /// Compares two values as a whole.
    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !is_equal(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
    }

    /// Compares two lists by their elements. Items are paired by their elements and not by their order: moving an item
    /// is not a change.
    fn visit_items(&mut self, position: Position<'_>, list: ListType<'_>, old: Option<&Value>, new: Option<&Value>) {
        if let (Some(Value::Array(old)), Some(Value::Array(new))) = (old, new)
            && position.are_paired(list, old, new)
        {
            return self.visit_pairs(position, list, old, new);
        }
        let mut old = by_element(position, list, old);
        let mut new = by_element(position, list, new);
        let elements: BTreeSet<PathElement> = old.keys().chain(new.keys()).cloned().collect();
        for element in elements {
            let (old, new) = (old.remove(&element).unwrap_or_default(), new.remove(&element).unwrap_or_default());
            self.path.push(element);
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.visit(position.items(), old.first().copied(), new.first().copied()),
                // Duplicate items are compared as one value.
                ([] | [_], _) => {
                    self.visit(position.items(), old.first().copied(), None);
                    self.found.added.insert(&self.path);
                }
                (_, [] | [_]) => {
                    self.visit(position.items(), None, new.first().copied());
                    self.found.removed.insert(&self.path);
                }
                _ => {
                    if old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| !is_equal(old, new)) {
                        self.found.modified.insert(&self.path);
                    }
                }
            }
            self.path.pop();
        }
    }

    /// Compares lists with the same items in the same order, the common case.
    fn visit_pairs(&mut self, position: Position<'_>, list: ListType<'_>, old: &[Value], new: &[Value]) {
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            if old != new
                && let Ok(element) = position.path_element(list, index, new)
            {
                self.path.push(element);
                self.visit(position.items(), Some(old), Some(new));
                self.path.pop();
            }
        }
    }
}

/// Returns a field of a value that may not be an object.
pub(super) fn field<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    value?.as_object()?.get(name)
}
