//! JSON merge patches as `evanphx/json-patch` applies them: reads an object and a patch, changes the object.
//!
//! RFC 7396 leaves lists as they are; that library removes the nulls of the objects in them, as it does outside of lists.

use serde_json::Value;

pub(crate) fn merge(object: &mut Value, patch: &Value) {
    let mut patch = patch.clone();
    in_fields(&mut patch);
    json_patch::merge(object, &patch);
}

/// Looks for lists: outside of them a null is what removes a field.
fn in_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(in_fields),
        Value::Array(items) => items.iter_mut().for_each(in_item),
        _ => {}
    }
}

/// Removes the nulls of objects; a null that is an item stays.
fn in_item(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(in_item);
        }
        Value::Array(items) => items.iter_mut().for_each(in_item),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_of_objects_in_lists_go_and_nulls_in_lists_stay() {
        let mut object = json!({ "a": 1, "list": [1] });
        let patch = json!({ "a": null, "list": [null, { "b": null, "c": [{ "d": null, "e": 1 }] }] });
        merge(&mut object, &patch);
        assert_eq!(object, json!({ "list": [null, { "c": [{ "e": 1 }] }] }));
    }
}
