//! Gives empty tables their type back: Lua has one empty table, JSON has `{}` and `[]`.
//!
//! An empty table of a result gets its type from the objects that went into the script. At a path
//! where one of them had an empty object it becomes `{}`. Where one had an empty list it remains `[]`. Any other empty
//! table is removed, because its type is unknown.
//!
//! The rules come from `ConvertLuaResultInto` in Karmada's
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua_convert.go`, with one difference. Of several empty
//! elements of one list Karmada removes some and keeps others, in the order of a set; here all of them are removed.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The type of a result that is empty as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Object,
    List,
}

/// Repairs `result`, whose empty tables are all `[]`.
pub(super) fn repair(mut result: Value, root: Root, references: &[&Value]) -> Value {
    if is_empty_list(&result) {
        return match root {
            Root::Object => Value::Object(Map::new()),
            Root::List => result,
        };
    }
    if !has_empty_list(&result) {
        return result;
    }
    let mut empties = Empties::default();
    for reference in references {
        empties.collect(reference);
    }
    repair_fields(&mut result, Some(&empties));
    result
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// Returns `true` if the value contains an empty list. Most results do not, and this check is cheaper than the repair.
fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.is_empty() || values.iter().any(has_empty_list),
        Value::Object(fields) => fields.values().any(has_empty_list),
        _ => false,
    }
}

/// The empty objects and lists of the references at one path, and at the paths below it. A path has no indices, so it
/// matches the same field in all elements of a list.
///
/// A tree needs no text for each path. A long key above many empty elements would be copied for each of them.
#[derive(Default)]
struct Empties<'a> {
    has_object: bool,
    has_list: bool,
    fields: HashMap<&'a str, Empties<'a>>,
}

impl<'a> Empties<'a> {
    fn collect(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                self.has_object |= fields.is_empty();
                for (key, value) in fields.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                    self.fields.entry(key).or_default().collect(value);
                }
            }
            Value::Array(values) => {
                self.has_list |= values.is_empty();
                for value in values {
                    self.collect(value);
                }
            }
            _ => {}
        }
    }
}

/// Repairs a value with the empty tables of the references at its path; `None` where they have nothing. Returns `true` if
/// the value is kept.
fn repair_fields(value: &mut Value, empties: Option<&Empties<'_>>) -> bool {
    if is_empty_list(value) {
        let Some(empties) = empties else { return false };
        if empties.has_object {
            *value = Value::Object(Map::new());
        }
        return empties.has_object || empties.has_list;
    }
    match value {
        Value::Object(fields) => fields
            .retain(|key, value| repair_fields(value, empties.and_then(|empties| empties.fields.get(key.as_str())))),
        Value::Array(values) => values.retain_mut(|value| repair_fields(value, empties)),
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Root, repair};

    #[test]
    fn empty_tables_take_their_type_from_references() {
        let reference = json!({"m": {}, "l": [], "deep": [{"m": {}, "l": []}, {"m": {"x": 1}}], "a.b": {}});
        for (name, result, root, expected) in [
            ("object", json!({"m": [], "x": 1}), Root::Object, json!({"m": {}, "x": 1})),
            ("list", json!({"l": []}), Root::Object, json!({"l": []})),
            ("unknown", json!({"new": [], "x": {"y": []}}), Root::Object, json!({"x": {}})),
            (
                "elements share a path",
                json!({"deep": [{}, {"l": [], "m": []}]}),
                Root::Object,
                json!({"deep": [{}, {"l": [], "m": {}}]}),
            ),
            ("dot in a key", json!({"a.b": [], "a": {"b": []}}), Root::Object, json!({"a.b": {}, "a": {}})),
            ("elements", json!({"new": [[], [], {"x": 1}]}), Root::Object, json!({"new": [{"x": 1}]})),
            ("empty object", json!([]), Root::Object, json!({})),
            ("empty list", json!([]), Root::List, json!([])),
        ] {
            assert_eq!(repair(result, root, &[&reference]), expected, "{name}");
        }
    }

    #[test]
    fn long_key_above_many_elements_is_not_copied() {
        let (key, elements) = ("k".repeat(1 << 20), vec![json!([]); 100_000]);
        let reference = json!({ &key: vec![json!({}); 100_000] });
        let repaired = repair(json!({ &key: elements }), Root::Object, &[&reference]);
        assert!(repaired == reference, "each element is an object again");
    }

    #[test]
    fn empty_tables_without_references_are_removed() {
        let result: Value = json!({"a": [], "b": {"c": []}, "d": 1});
        assert_eq!(repair(result, Root::Object, &[]), json!({"b": {}, "d": 1}));
    }
}
