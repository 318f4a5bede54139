//! Strategic merge patches: lists are merged by the keys that the built-in types name.

use serde_json::{Map, Value};

use crate::schema::Schema;

/// Merges a patch into an object.
///
/// # Errors
/// When an item of a list has no merge key, or a directive is unknown.
pub(crate) fn strategic_merge(schema: Option<Schema<'_>>, object: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    match changes.get("$patch").and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *object = plain(changes);
            return Ok(());
        }
        Some("delete") => {
            *object = Value::Object(Map::new());
            return Ok(());
        }
        Some(other) => return Err(format!("Unknown patch type found: {other}")),
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else { return Ok(()) };
    if let Some(kept) = changes.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    for (name, change) in changes.iter().filter(|(name, _)| !name.starts_with('$')) {
        let schema = schema.and_then(|schema| schema.field(name));
        match change {
            Value::Null => {
                fields.remove(name);
            }
            Value::Array(items) => {
                let list = fields.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                merge_list(schema, list, items)?;
            }
            Value::Object(_) => strategic_merge(schema, fields.entry(name.clone()).or_insert(Value::Null), change)?,
            scalar => {
                fields.insert(name.clone(), scalar.clone());
            }
        }
    }
    for (name, items) in changes {
        if let (Some(field), Some(gone)) = (name.strip_prefix("$deleteFromPrimitiveList/"), items.as_array())
            && let Some(Value::Array(list)) = fields.get_mut(field)
        {
            list.retain(|item| !gone.contains(item));
        }
    }
    order(schema, fields, changes);
    Ok(())
}

/// An object without directives.
fn plain(changes: &Map<String, Value>) -> Value {
    let fields = changes.iter().filter(|(name, _)| !name.starts_with('$'));
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn merge_list(schema: Option<Schema<'_>>, list: &mut Value, changes: &[Value]) -> Result<(), String> {
    let replaces = changes.iter().any(|change| change["$patch"] == "replace");
    let mergeable = schema.filter(|schema| schema.has_patch_strategy("merge") && !replaces);
    let (Some(schema), Value::Array(items)) = (mergeable, &mut *list) else {
        *list = changes.iter().filter(|change| change["$patch"] != "replace").cloned().collect();
        return Ok(());
    };
    let Some(key) = schema.patch_merge_key() else {
        for change in changes {
            if !items.contains(change) {
                items.push(change.clone());
            }
        }
        return Ok(());
    };
    for change in changes {
        let Some(value) = change.get(key) else {
            return Err(format!("map: {change} does not contain declared merge key: {key}"));
        };
        let place = items.iter().position(|item| &item[key] == value);
        match (place, change["$patch"] == "delete") {
            (Some(at), true) => {
                items.remove(at);
            }
            (None, true) => {}
            (Some(at), false) => strategic_merge(schema.items(), &mut items[at], change)?,
            (None, false) => {
                let mut added = Value::Object(Map::new());
                strategic_merge(schema.items(), &mut added, change)?;
                items.push(added);
            }
        }
    }
    Ok(())
}

/// `$setElementOrder/FIELD`: items that it names come in its order, the others keep their places after what is before them.
fn order(schema: Option<Schema<'_>>, fields: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, wanted) in changes {
        let (Some(field), Some(wanted)) = (name.strip_prefix("$setElementOrder/"), wanted.as_array()) else { continue };
        let key = schema.and_then(|schema| schema.property(field)).and_then(|schema| schema.patch_merge_key());
        let Some(Value::Array(items)) = fields.get_mut(field) else { continue };
        let rank = |item: &Value| {
            wanted.iter().position(|wanted| match key {
                Some(key) => wanted[key] == item[key],
                None => wanted == item,
            })
        };
        let mut last = 0;
        let ranked: Vec<usize> = items
            .iter()
            .map(|item| {
                last = rank(item).unwrap_or(last);
                last
            })
            .collect();
        let mut places: Vec<usize> = (0..items.len()).collect();
        places.sort_by_key(|place| ranked[*place]);
        *items = places.into_iter().map(|place| items[place].clone()).collect();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(before: &Value, patch: &Value, after: &Value) {
        let mut object = json!({ "spec": before });
        let patch = json!({ "spec": patch });
        strategic_merge(Schema::built_in("v1", "Pod"), &mut object, &patch).unwrap();
        assert_eq!(&object["spec"], after);
    }

    #[test]
    fn containers_are_merged_by_name() {
        check(
            &json!({ "containers": [{ "name": "a", "image": "1" }, { "name": "b", "image": "2" }] }),
            &json!({ "containers": [{ "name": "b", "image": "3" }, { "name": "c" }, { "name": "a", "$patch": "delete" }] }),
            &json!({ "containers": [{ "name": "b", "image": "3" }, { "name": "c" }] }),
        );
    }

    #[test]
    fn lists_without_a_strategy_are_replaced() {
        check(
            &json!({ "tolerations": [{ "key": "a" }, { "key": "b" }] }),
            &json!({ "tolerations": [{ "key": "c" }] }),
            &json!({ "tolerations": [{ "key": "c" }] }),
        );
    }

    #[test]
    fn directives_replace_order_and_retain() {
        check(
            &json!({ "containers": [{ "name": "a" }, { "name": "b" }] }),
            &json!({ "containers": [{ "name": "c" }, { "$patch": "replace" }] }),
            &json!({ "containers": [{ "name": "c" }] }),
        );
        check(
            &json!({ "containers": [{ "name": "a" }, { "name": "b" }] }),
            &json!({ "containers": [{ "name": "c" }], "$setElementOrder/containers": [{ "name": "c" }, { "name": "b" }, { "name": "a" }] }),
            &json!({ "containers": [{ "name": "c" }, { "name": "b" }, { "name": "a" }] }),
        );
        check(
            &json!({ "os": { "name": "linux" }, "nodeName": "n" }),
            &json!({ "$retainKeys": ["nodeName"], "nodeName": "m" }),
            &json!({ "nodeName": "m" }),
        );
    }

    #[test]
    fn item_without_its_key_is_refused() {
        let patch = json!({ "spec": { "containers": [{ "image": "x" }] } });
        let error = strategic_merge(Schema::built_in("v1", "Pod"), &mut json!({}), &patch).unwrap_err();
        assert_eq!(error, r#"map: {"image":"x"} does not contain declared merge key: name"#);
    }
}
