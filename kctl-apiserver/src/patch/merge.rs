//! JSON merge patches as `evanphx/json-patch` applies them.
//!
//! RFC 7396 leaves lists as they are. That library also removes nulls from objects within lists, unless a list replaces
//! an object. Upstream: `merge.go` of that library.

use serde_json::{Map, Value};

/// Merges a patch into a value. A patch that is not an object replaces the value.
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(fields), Value::Object(patch)) => merge_fields(fields, patch),
        (object @ Value::Object(_), _) => patch.clone_into(object),
        (object, _) => *object = new(patch),
    }
}

/// Merges fields. A null removes a field. Upstream: `mergeDocs`. A field that is null in the object counts as absent.
fn merge_fields(fields: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
            continue;
        }
        let current = fields.entry(name).or_insert(Value::Null);
        if current.is_null() {
            *current = new(value);
        } else {
            merge(current, value);
        }
    }
}

/// Returns a patch value without nulls, for a field that has no object yet. A merge patch cannot write nulls into
/// objects.
fn new(value: &Value) -> Value {
    let mut value = value.clone();
    remove_nulls(&mut value);
    value
}

/// Removes the nulls of objects; a null that is an item is kept.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_are_removed_from_objects_but_not_lists() {
        let mut object = json!({ "a": 1, "list": [1] });
        let patch = json!({ "a": null, "list": [null, { "b": null, "c": [{ "d": null, "e": 1 }] }] });
        merge(&mut object, &patch);
        assert_eq!(object, json!({ "list": [null, { "c": [{ "e": 1 }] }] }));
    }

    #[test]
    fn list_replacing_an_object_keeps_its_nulls() {
        let mut object = json!({ "a": {}, "b": { "c": 1 }, "d": "text" });
        let list = json!([{ "e": null, "f": 1 }]);
        merge(&mut object, &json!({ "a": list, "b": list, "d": list }));
        assert_eq!(object, json!({ "a": list, "b": list, "d": [{ "f": 1 }] }));
    }
}
