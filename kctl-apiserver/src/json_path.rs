//! Reads and edits nested JSON values, and formats their paths for errors.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

/// The path of a value, as its last step and the path of the parent. It lives on the stack of a recursion, and becomes a
/// string only for an error.
#[derive(Clone, Copy)]
pub(crate) enum JsonPath<'a> {
    /// Formatted as the empty string; fields below it have no leading dot.
    Root,
    /// A field, or a key of a map: `.name`.
    Field(&'a JsonPath<'a>, &'a str),
    /// `[0]`.
    Item(&'a JsonPath<'a>, usize),
    /// A key of a map as validation prints it: `[key]`.
    Key(&'a JsonPath<'a>, &'a str),
}

impl JsonPath<'_> {
    /// Returns `true` for a field below this field of the root, at any depth.
    pub(crate) fn is_below(&self, root_field: &str) -> bool {
        match self {
            Self::Root => false,
            Self::Field(Self::Field(Self::Root, name), _) => *name == root_field,
            Self::Field(parent, _) | Self::Item(parent, _) | Self::Key(parent, _) => parent.is_below(root_field),
        }
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => out.write_str(name),
            Self::Field(parent, name) => write!(out, "{parent}.{name}"),
            Self::Item(parent, index) => write!(out, "{parent}[{index}]"),
            Self::Key(parent, key) => write!(out, "{parent}[{key}]"),
        }
    }
}

/// Returns a nested field.
pub(crate) fn value_at<'v, const N: usize>(value: &'v Value, names: [&str; N]) -> Option<&'v Value> {
    names.into_iter().try_fold(value, |value, name| value.get(name))
}

/// Returns a nested field for a change.
pub(crate) fn at_mut<'v, const N: usize>(value: &'v mut Value, names: [&str; N]) -> Option<&'v mut Value> {
    names.into_iter().try_fold(value, |value, name| value.get_mut(name))
}

/// Sets a field of an object, or removes it for `None`. Values that are not objects are not changed.
pub(crate) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Value::Object(map) = object else { return };
    match value {
        Some(value) => map.insert(field.into(), value),
        None => map.remove(field),
    };
}

/// Removes a field of a part, if the object has that part.
pub(crate) fn remove(object: &mut Value, part: &str, field: &str) {
    if let Some(part) = object.get_mut(part) {
        set(part, field, None);
    }
}

/// Sets the value at a JSON pointer, or removes it for `None`. A missing parent is not created.
pub(crate) fn set_at(object: &mut Value, pointer: &str, value: Option<Value>) {
    let parent = pointer.rsplit_once('/').and_then(|(parent, field)| Some((object.pointer_mut(parent)?, field)));
    if let Some((parent, field)) = parent {
        set(parent, field, value);
    }
}

/// Appends an item to a list. Another value, such as null, is replaced by a list.
pub(crate) fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = vec![item].into(),
    }
}

/// Appends an item to a list that does not have it. Another value, such as null, is replaced by a list.
pub(crate) fn push_once(list: &mut Value, item: Value) {
    if !list.as_array().is_some_and(|items| items.contains(&item)) {
        push(list, item);
    }
}

/// Iterates over the items of a list with their indexes; another value has no items.
pub(crate) fn entries(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// Returns the items of a list by their `name`; of several items with one name, the first.
pub(crate) fn by_name(list: &Value) -> BTreeMap<&str, &Value> {
    let mut items = BTreeMap::new();
    for (_, item) in entries(list) {
        items.entry(item["name"].as_str().unwrap_or_default()).or_insert(item);
    }
    items
}

/// Returns the number of nested lists and maps. Scalars have depth 0.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_lead_to_fields_of_fields() {
        let mut value = json!({ "a": { "b/c": 1 }, "d": [2] });
        for (names, found) in
            [(["a", "b/c"], Some(json!(1))), (["a", "x"], None), (["d", "0"], None), (["x", "y"], None)]
        {
            assert_eq!(value_at(&value, names), found.as_ref(), "{names:?}");
            assert_eq!(at_mut(&mut value, names), found.clone().as_mut(), "{names:?}");
        }
    }
}
