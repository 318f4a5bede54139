//! Merge patches (RFC 7386): the patch from one value to another, and whether it replaces a list.

use serde_json::{Map, Value};

/// Returns the merge patch (RFC 7386) that turns `old` into `new`, or `None` if they are equal.
pub(super) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        // A merge patch cannot set null, only remove, so null and missing count as equal.
        let before = old.get(name).unwrap_or(&Value::Null);
        if let Some(change) = merge_patch(before, value) {
            patch.insert(name.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Returns `true` if a merge patch sets or removes a list.
pub(super) fn replaces_list(old: &Value, patch: &Value) -> bool {
    match patch {
        Value::Object(changes) => {
            changes.iter().any(|(name, change)| replaces_list(old.get(name).unwrap_or(&Value::Null), change))
        }
        _ => patch.is_array() || old.is_array() || old.as_object().is_some_and(has_list),
    }
}

/// Returns `true` if two values have the same lists in the same places.
pub(super) fn has_same_lists(one: &Value, other: &Value) -> bool {
    if let (Value::Object(one), Value::Object(other)) = (one, other) {
        let get = |fields: &Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
        return one.keys().chain(other.keys()).all(|name| has_same_lists(&get(one, name), &get(other, name)));
    }
    let has_any = |value: &Value| value.is_array() || value.as_object().is_some_and(has_list);
    one == other || !(has_any(one) || has_any(other))
}

fn has_list(object: &Map<String, Value>) -> bool {
    object.values().any(|value| value.is_array() || value.as_object().is_some_and(has_list))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(old: Value, new: &Value, expected: Option<Value>) {
        assert_eq!(merge_patch(&old, new), expected);
        let mut patched = old;
        if let Some(patch) = expected {
            apply(&mut patched, &patch);
            assert_eq!(&patched, new);
        }
    }

    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(changes) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (name, change) in changes {
            if change.is_null() {
                target.as_object_mut().unwrap().remove(name);
            } else {
                apply(target.as_object_mut().unwrap().entry(name.clone()).or_insert(Value::Null), change);
            }
        }
    }

    #[test]
    fn equal_statuses_send_nothing() {
        check(json!({"ready": 1}), &json!({"ready": 1}), None);
    }

    #[test]
    fn removed_fields_become_null() {
        check(
            json!({"a": 1, "b": {"c": 2, "d": 3}}),
            &json!({"b": {"c": 4}}),
            Some(json!({"a": null, "b": {"c": 4, "d": null}})),
        );
    }

    #[test]
    fn patches_that_touch_lists_are_detected() {
        let list = json!([{ "type": "Ready" }]);
        for (old, new, expected) in [
            (json!({}), json!({ "conditions": list }), true),
            (json!({ "conditions": list }), json!({ "conditions": [] }), true),
            (json!({ "conditions": list }), json!({}), true),
            (json!({ "a": { "conditions": list } }), json!({}), true),
            (json!({ "a": { "b": 1 } }), json!({ "a": { "conditions": list, "b": 1 } }), true),
            (json!({ "n": 1, "conditions": list }), json!({ "n": 2, "conditions": list }), false),
            (json!({ "a": { "b": 1 } }), json!({}), false),
            (Value::Null, json!({ "n": 1 }), false),
            (Value::Null, json!({ "conditions": list }), true),
        ] {
            let patch = merge_patch(&old, &new).unwrap();
            assert_eq!(replaces_list(&old, &patch), expected, "{old} {new}");
        }
    }

    #[test]
    fn same_lists_are_found_beside_other_changes() {
        let (list, longer) = (json!([{ "type": "Ready" }]), json!([{ "type": "Ready" }, { "type": "Theirs" }]));
        for (one, other, expected) in [
            (Value::Null, json!({ "n": 1 }), true),
            (Value::Null, json!({ "conditions": list }), false),
            (json!({ "n": 1, "conditions": list }), json!({ "n": 2, "conditions": list }), true),
            (json!({ "n": 1, "conditions": list }), json!({ "n": 1, "conditions": longer }), false),
            (json!({ "n": 1, "conditions": list }), json!({ "n": 1 }), false),
            (json!({ "a": { "b": 1 } }), json!({ "a": { "b": 2, "conditions": list } }), false),
            (json!({ "a": { "conditions": list } }), json!({}), false),
            (json!({ "a": { "b": 1 } }), json!({ "a": 1 }), true),
        ] {
            assert_eq!(has_same_lists(&one, &other), expected, "{one} {other}");
            assert_eq!(has_same_lists(&other, &one), expected, "{other} {one}");
        }
    }

    #[test]
    fn first_status_is_sent_whole() {
        check(Value::Null, &json!({"ready": 0}), Some(json!({"ready": 0})));
    }
}
