//! Applies the changes of a typed object to the JSON that it was read from.
//!
//! A Rust type may know only a part of an object, and may write fields in another form, such as
//! `2000m` as `2`. Replacing the object by the serialized type would lose or change such fields. So
//! the object is serialized before and after the function, and only the difference between the two
//! is applied to the original.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

/// Applies the difference between two serialized states to the object that the first was read from.
///
/// Objects are merged field by field. Items of a list are matched with their old ones: equal ones
/// first, then by `name`, `type` or `key`, then by index. A list that the type itself reorders, such as
/// a `BTreeSet`, keeps the order of the object, and new items follow. A field that is gone in `after` is
/// removed together with its unknown fields: half an entry of a map would not be valid.
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
            object.remove(name);
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

/// Merges a list item by item. Each new item is merged into the item of the object that it comes from.
///
/// If the type reorders the list, its order has no meaning: the items of the object keep theirs.
fn items(object: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let sources = sources(object, before);
    let merged = after.iter().zip(origins(before, after)).map(|(new, origin)| match origin {
        Some(idx) => {
            let mut item = object[sources[idx]].clone();
            apply(&mut item, &before[idx], new);
            (sources[idx], item)
        }
        None => (object.len(), new.clone()),
    });
    let mut merged: Vec<(usize, Value)> = merged.collect();
    if !sources.is_sorted() {
        merged.sort_by_key(|(source, _)| *source);
    }
    merged.into_iter().map(|(_, item)| item).collect()
}

/// Returns the index in the object of each item that the type wrote. Both lists have the same length.
///
/// It differs from the index in `before` if the type reorders the list, as `BTreeSet` and `HashSet` do.
/// Items are compared by the fields that the type knows. An item in another form, such as `1000m` for
/// `1`, equals no other one: writing it again would give the same form.
fn sources(object: &[Value], before: &[Value]) -> Vec<usize> {
    let mut shape = Shape::default();
    for item in before {
        shape.learn(item);
    }
    let known: Vec<Value> = object.iter().map(|item| shape.project(item)).collect();
    let written: Vec<Value> = before.iter().map(|item| shape.project(item)).collect();
    let same_index = |(idx, (known, written)): (usize, (&Value, &Value))| (known == written).then_some(idx);
    let mut sources: Vec<_> = known.iter().zip(&written).enumerate().map(same_index).collect();
    let mut is_taken: Vec<_> = sources.iter().map(Option::is_some).collect();
    assign(&known, &written, &mut sources, &mut is_taken, |item| Some(item.to_string()));
    assign(&known, &written, &mut sources, &mut is_taken, name_of);
    for (idx, source) in sources.iter_mut().enumerate().filter(|(_, source)| source.is_none()) {
        if !is_taken[idx] {
            is_taken[idx] = true;
            *source = Some(idx);
        }
    }
    let mut free = (0..object.len()).filter(|idx| !is_taken[*idx]);
    sources.into_iter().enumerate().map(|(idx, source)| source.or_else(|| free.next()).unwrap_or(idx)).collect()
}

/// The fields that the items of a list have together, as far as the type writes them.
#[derive(Default)]
struct Shape<'a> {
    fields: BTreeMap<&'a str, Shape<'a>>,
    items: Option<Box<Shape<'a>>>,
}

impl<'a> Shape<'a> {
    /// Adds the fields of a value.
    fn learn(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.fields.entry(name).or_default().learn(field);
                }
            }
            Value::Array(items) => {
                let shape = self.items.get_or_insert_default();
                for item in items {
                    shape.learn(item);
                }
            }
            _ => {}
        }
    }

    /// Returns the value without null and without fields that the shape lacks.
    fn project(&self, value: &Value) -> Value {
        match (value, &self.items) {
            (Value::Object(fields), _) => {
                let known = fields.iter().filter(|(_, field)| !field.is_null());
                let known = known
                    .filter_map(|(name, field)| Some((name.clone(), self.fields.get(name.as_str())?.project(field))));
                Value::Object(known.collect())
            }
            (Value::Array(items), Some(shape)) => items.iter().map(|item| shape.project(item)).collect(),
            (value, _) => value.clone(),
        }
    }
}

/// Returns the old item of each new one: an equal one, else one of the same name, else the one at
/// its index if it is still free.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut origins = vec![None; after.len()];
    let mut is_taken = vec![false; before.len()];
    assign(before, after, &mut origins, &mut is_taken, |item| Some(item.to_string()));
    assign(before, after, &mut origins, &mut is_taken, name_of);
    for (idx, origin) in origins.iter_mut().enumerate().filter(|(_, origin)| origin.is_none()) {
        let are_both_named = before.get(idx).and_then(name_of).is_some() && name_of(&after[idx]).is_some();
        if idx < before.len() && !is_taken[idx] && !are_both_named {
            is_taken[idx] = true;
            *origin = Some(idx);
        }
    }
    origins
}

/// Returns the value of the field that identifies an item of a list in Kubernetes.
fn name_of(item: &Value) -> Option<String> {
    let name = item.get("name").or_else(|| item.get("type")).or_else(|| item.get("key"));
    name.and_then(Value::as_str).map(str::to_owned)
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
            ("null is kept", json!({"a": null}), json!({}), json!({}), json!({"a": null})),
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
                "removed with an unknown field",
                json!({"r": {"a": 1, "x": 1}, "x": 1}),
                json!({"r": {"a": 1}}),
                json!({}),
                json!({"x": 1}),
            ),
            (
                "removed from a map",
                json!({"m": {"a": {"i": 1, "x": 1}, "b": {"i": 2, "x": 2}}}),
                json!({"m": {"a": {"i": 1}, "b": {"i": 2}}}),
                json!({"m": {"b": {"i": 2}}}),
                json!({"m": {"b": {"i": 2, "x": 2}}}),
            ),
            (
                "the last of a map",
                json!({"m": {"a": {"i": 1, "x": 1}}}),
                json!({"m": {"a": {"i": 1}}}),
                json!({"m": {}}),
                json!({"m": {}}),
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

    #[test]
    fn reordered_items_are_merged_by_content() {
        let unnamed = json!([{"i": 2, "x": 2}, {"i": 1, "x": 1}]);
        check([
            ("removed", json!(["b", "a"]), json!(["a", "b"]), json!(["b"]), json!(["b"])),
            ("added", json!(["c", "a"]), json!(["a", "c"]), json!(["a", "b", "c"]), json!(["c", "a", "b"])),
            ("shuffled", json!(["c", "a"]), json!(["a", "c"]), json!(["c", "a"]), json!(["c", "a"])),
            ("another form", json!(["2000m", "1"]), json!(["1", "2"]), json!(["2"]), json!(["2000m"])),
            (
                "unknown fields",
                unnamed.clone(),
                json!([{"i": 1}, {"i": 2}]),
                json!([{"i": 2}]),
                json!([{"i": 2, "x": 2}]),
            ),
            (
                "an item changes",
                unnamed,
                json!([{"i": 1}, {"i": 2}]),
                json!([{"i": 1}, {"i": 3}]),
                json!([{"i": 3, "x": 2}, {"i": 1, "x": 1}]),
            ),
            (
                "an item without fields",
                json!([{"i": 1, "x": 1}, {"x": 2}]),
                json!([{}, {"i": 1}]),
                json!([{"i": 1}]),
                json!([{"i": 1, "x": 1}]),
            ),
            (
                "equal forms at another index",
                json!([{"q": "1000m", "x": 1}, {"q": "1", "x": 2}]),
                json!([{"q": "1"}, {"q": "1"}]),
                json!([{"q": "1"}, {"q": "1"}, {"q": "3"}]),
                json!([{"q": "1000m", "x": 1}, {"q": "1", "x": 2}, {"q": "3"}]),
            ),
        ]);
    }
}
