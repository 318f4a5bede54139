//! Gives empty tables their type back: Lua has one empty table, JSON has `{}` and `[]`.
//!
//! An empty table of a result gets its type from the objects that went into the script. At a path
//! where one of them had an empty object it becomes `{}`. Where one had an empty list it remains `[]`. Any other empty
//! table is removed, because its type is unknown.
//!
//! The rules come from `ConvertLuaResultInto` in Karmada's
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua_convert.go`, with one difference. Of several empty
//! elements of one list Karmada removes some and keeps others, in the order of a set; here all of them are removed.

use std::collections::HashSet;

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
        empties.collect(reference, None);
    }
    empties.repair(&mut result, None);
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

/// The paths at which the references have an empty object or list. A path has no indices, so it matches the same field
/// in all elements of a list.
#[derive(Default)]
struct Empties {
    objects: HashSet<String>,
    lists: HashSet<String>,
}

enum Verdict {
    Keep,
    Object,
    Remove,
}

/// A key with those above it. It becomes text only where a table is empty: most are not.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    key: &'a str,
}

/// Joins the keys of a path with dots, as Karmada does (`escapeJSONPathDotAndColon` in `luavm/lua_convert.go`). Dots and
/// colons in keys are escaped.
fn join(path: Option<&Path<'_>>) -> String {
    let mut keys: Vec<String> = std::iter::successors(path, |path| path.parent)
        .map(|path| path.key.replace('.', "\\.").replace(':', "\\:"))
        .collect();
    keys.reverse();
    keys.join(".")
}

impl Empties {
    fn collect(&mut self, value: &Value, path: Option<&Path<'_>>) {
        match value {
            Value::Object(fields) if fields.is_empty() => {
                self.objects.insert(join(path));
            }
            Value::Array(values) if values.is_empty() => {
                self.lists.insert(join(path));
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.collect(value, Some(&Path { parent: path, key }));
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.collect(value, path)),
            _ => {}
        }
    }

    fn verdict(&self, path: Option<&Path<'_>>) -> Verdict {
        let path = join(path);
        if self.objects.contains(&path) {
            Verdict::Object
        } else if self.lists.contains(&path) {
            Verdict::Keep
        } else {
            Verdict::Remove
        }
    }

    /// Returns `true` if the value is kept.
    fn repair(&self, value: &mut Value, path: Option<&Path<'_>>) -> bool {
        if is_empty_list(value) {
            let verdict = self.verdict(path);
            if matches!(verdict, Verdict::Object) {
                *value = Value::Object(Map::new());
            }
            return !matches!(verdict, Verdict::Remove);
        }
        match value {
            Value::Object(fields) => {
                fields.retain(|key, value| self.repair(value, Some(&Path { parent: path, key })));
            }
            Value::Array(values) => values.retain_mut(|value| self.repair(value, path)),
            _ => {}
        }
        true
    }
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
    fn empty_tables_without_references_are_removed() {
        let result: Value = json!({"a": [], "b": {"c": []}, "d": 1});
        assert_eq!(repair(result, Root::Object, &[]), json!({"b": {}, "d": 1}));
    }
}
