//! Applies the changes of a typed object to the JSON that it was read from.
//!
//! A Rust type may know only a part of an object, and may write fields in another form, such as
//! `2000m` as `2`. Replacing the object by the serialized type would lose or change such fields. So
//! the object is serialized before and after the function, and only the difference between the two
//! is applied to the original.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Applies the difference between two serialized states to the object that the first was read from.
///
/// Objects are merged field by field. Items of a list are matched with their old ones: equal ones
/// first, then by `name`, `type` or `key`, then by index. A field that is gone in `after` is
/// removed together with what `before` knew of it; unknown fields in it are kept.
///
/// ```
/// use kctl_webhook::change;
/// use serde_json::json;
///
/// // The type knows `replicas` only.
/// let mut object = json!({ "spec": { "replicas": 1, "paused": true } });
/// change::apply(&mut object, &json!({ "spec": { "replicas": 1 } }), &json!({ "spec": { "replicas": 3 } }));
/// assert_eq!(object, json!({ "spec": { "replicas": 3, "paused": true } }));
/// ```
///
/// List items keep their unknown fields when they move:
///
/// ```
/// # use kctl_webhook::change;
/// # use serde_json::json;
/// let mut object = json!([{ "name": "a", "x": 1 }, { "name": "b", "x": 2 }]);
/// change::apply(&mut object, &json!([{ "name": "a" }, { "name": "b" }]), &json!([{ "name": "b" }]));
/// assert_eq!(object, json!([{ "name": "b", "x": 2 }]));
/// ```
pub fn apply(object: &mut Value, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    match (object, before, after) {
        (Value::Object(object), Value::Object(before), Value::Object(after)) => fields(object, before, after),
        (Value::Array(object), Value::Array(before), Value::Array(after)) if object.len() == before.len() => {
            *object = items(object, before, after);
        }
        (object, _, after) => *object = after.clone(),
    }
}

fn fields(object: &mut Map<String, Value>, before: &Map<String, Value>, after: &Map<String, Value>) {
    for (name, old) in before {
        if after.get(name).is_none_or(|new| new.is_null() && !old.is_null()) {
            remove(object, name, old);
        }
    }
    let empty = Value::Object(Map::new());
    for (name, new) in after.iter().filter(|(_, new)| !new.is_null()) {
        // Serialization may skip a field that the object has, such as an empty object: treat it as empty before.
        let old = before.get(name).filter(|old| !old.is_null()).unwrap_or(&empty);
        if before.get(name) == Some(new) {
            continue;
        }
        match object.get_mut(name).filter(|value| !value.is_null()) {
            Some(value) => apply(value, old, new),
            None => drop(object.insert(name.clone(), new.clone())),
        }
    }
}

/// Removes what the type knows of a field, and the whole field if nothing else is in it.
fn remove(object: &mut Map<String, Value>, name: &str, fields: &Value) {
    if let (Some(Value::Object(inner)), Value::Object(fields)) = (object.get_mut(name), fields) {
        for (name, fields) in fields {
            remove(inner, name, fields);
        }
        if inner.values().any(|value| !value.is_null()) {
            return;
        }
    }
    object.remove(name);
}

/// Merges a list item by item. Each new item is merged into the old item that it comes from.
fn items(object: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let from = origins(before, after);
    let merged = after.iter().zip(from).map(|(new, origin)| match origin {
        Some(idx) => {
            let mut item = object[idx].clone();
            apply(&mut item, &before[idx], new);
            item
        }
        None => new.clone(),
    });
    merged.collect()
}

/// Returns the old item of each new one: an equal one, else one of the same name, else the one at
/// its index if it is still free.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut origins = vec![None; after.len()];
    let mut is_taken = vec![false; before.len()];
    let same = |item: &Value| Some(item.to_string());
    let named = |item: &Value| {
        let name = item.get("name").or_else(|| item.get("type")).or_else(|| item.get("key"));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    assign(before, after, &mut origins, &mut is_taken, same);
    assign(before, after, &mut origins, &mut is_taken, named);
    for (idx, origin) in origins.iter_mut().enumerate().filter(|(_, origin)| origin.is_none()) {
        let are_both_named = before.get(idx).and_then(named).is_some() && named(&after[idx]).is_some();
        if idx < before.len() && !is_taken[idx] && !are_both_named {
            is_taken[idx] = true;
            *origin = Some(idx);
        }
    }
    origins
}

/// Matches new items with old items of the same key, in order.
fn assign(
    before: &[Value],
    after: &[Value],
    origins: &mut [Option<usize>],
    is_taken: &mut [bool],
    key: impl Fn(&Value) -> Option<String>,
) {
    let mut free: HashMap<String, Vec<usize>> = HashMap::new();
    for (idx, item) in before.iter().enumerate().rev().filter(|(idx, _)| !is_taken[*idx]) {
        if let Some(key) = key(item) {
            free.entry(key).or_default().push(idx);
        }
    }
    for (origin, item) in origins.iter_mut().zip(after).filter(|(origin, _)| origin.is_none()) {
        let found = key(item).and_then(|key| free.get_mut(&key)?.pop());
        if let Some(idx) = found {
            is_taken[idx] = true;
            *origin = Some(idx);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Name, object, typed object before and after the function, and the expected object.
    type Case = (&'static str, Value, Value, Value, Value);

    fn check(cases: impl IntoIterator<Item = Case>) {
        for (name, mut object, before, after, expected) in cases {
            apply(&mut object, &before, &after);
            assert_eq!(object, expected, "{name}");
        }
    }

    #[test]
    fn only_changed_fields_are_merged_into_the_object() {
        check([
            ("nothing", json!({"x": 1}), json!({}), json!({}), json!({"x": 1})),
            ("a field", json!({"a": 1, "x": 1}), json!({"a": 1}), json!({"a": 2}), json!({"a": 2, "x": 1})),
            ("a new field", json!({"x": 1}), json!({}), json!({"a": 2}), json!({"a": 2, "x": 1})),
            ("from null", json!({}), json!({"a": null}), json!({"a": 2}), json!({"a": 2})),
            ("to null", json!({"a": 1}), json!({"a": 1}), json!({"a": null}), json!({})),
            ("null stays", json!({"a": null}), json!({}), json!({}), json!({"a": null})),
            ("not written before", json!({"p": false}), json!({}), json!({"p": true}), json!({"p": true})),
            ("not written after", json!({"p": true}), json!({"p": true}), json!({}), json!({})),
            ("added by the type", json!({}), json!({"r": {}}), json!({"r": {}}), json!({})),
            ("inside what the type added", json!({}), json!({"r": {}}), json!({"r": {"a": 1}}), json!({"r": {"a": 1}})),
            (
                "inside what the type left out",
                json!({"r": {"x": 1}}),
                json!({}),
                json!({"r": {"a": 1}}),
                json!({"r": {"a": 1, "x": 1}}),
            ),
            (
                "removed around an unknown field",
                json!({"r": {"a": 1, "x": 1}}),
                json!({"r": {"a": 1}}),
                json!({}),
                json!({"r": {"x": 1}}),
            ),
            (
                "a quantity in another form",
                json!({"q": "1000m"}),
                json!({"q": "1"}),
                json!({"q": "2"}),
                json!({"q": "2"}),
            ),
        ]);
    }

    #[test]
    fn items_are_merged_by_name_or_index() {
        check([
            (
                "in an item",
                json!([{"name": "a", "x": 1}, {"name": "b", "i": 1, "x": 2}]),
                json!([{"name": "a"}, {"name": "b", "i": 1}]),
                json!([{"name": "a"}, {"name": "b", "i": 2}]),
                json!([{"name": "a", "x": 1}, {"name": "b", "i": 2, "x": 2}]),
            ),
            (
                "an item in front",
                json!([{"name": "a", "x": 1}]),
                json!([{"name": "a"}]),
                json!([{"name": "b"}, {"name": "a", "i": 1}]),
                json!([{"name": "b"}, {"name": "a", "i": 1, "x": 1}]),
            ),
            (
                "another order",
                json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}]),
                json!([{"name": "a"}, {"name": "b"}]),
                json!([{"name": "b"}, {"name": "a"}]),
                json!([{"name": "b", "x": 2}, {"name": "a", "x": 1}]),
            ),
            (
                "an item of another name is another item",
                json!([{"name": "a", "x": 1}]),
                json!([{"name": "a"}]),
                json!([{"name": "b"}]),
                json!([{"name": "b"}]),
            ),
            (
                "items without names",
                json!([{"i": 1, "x": 1}, {"i": 2, "x": 2}]),
                json!([{"i": 1}, {"i": 2}]),
                json!([{"i": 3}]),
                json!([{"i": 3, "x": 1}]),
            ),
            ("a removed item", json!([1, 2, 3]), json!([1, 2, 3]), json!([1, 3]), json!([1, 3])),
        ]);
    }
}
