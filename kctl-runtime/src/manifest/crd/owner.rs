//! Finds the Rust type and field of a place in an object: `spec.template.name` is `Template.name`.
//!
//! Problems are found in the finished schema, which has no types any more. A user looks for the struct, so messages
//! have both: `WebSpec.count (spec.count)`. The names come from the schema with references (`$defs`), where schemars
//! keeps the name of each type.

use serde_json::Value;

/// Follows references and the value of an `Option`.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    follow(root, schema).1
}

/// Follows references and the value of an `Option`, and returns the name of the last type as well. Each definition is
/// followed at most once.
pub(super) fn follow<'a>(root: &'a Value, schema: &'a Value) -> (Option<&'a str>, &'a Value) {
    let (mut name, mut schema) = (None, schema);
    let mut steps = root["$defs"].as_object().map_or(0, serde_json::Map::len) + 1;
    loop {
        let value = schema["anyOf"].as_array().and_then(|all| match all.as_slice() {
            [value, null] if null["type"] == "null" => Some(value),
            _ => None,
        });
        if let Some(value) = value {
            schema = value;
        }
        let Some(target) = type_of_ref(&schema["$ref"]) else { return (name, schema) };
        if steps == 0 {
            return (name, schema);
        }
        steps -= 1;
        name = Some(target);
        schema = &root["$defs"][target];
    }
}

/// Returns the name of the type that the value of a `$ref` refers to.
pub(super) fn type_of_ref(reference: &Value) -> Option<&str> {
    reference.as_str()?.strip_prefix("#/$defs/")
}

/// Returns type and field of a place such as `spec.hosts[].name` or `spec.labels{}`.
///
/// `[]` selects the items of a list and `{}` the values of a map. Returns `None` if a field is not in the schema, for
/// example below a value without one.
pub(super) fn field(root: &Value, path: &str) -> Option<String> {
    let mut schema = root;
    let mut type_path = root["title"].as_str().unwrap_or_default().to_owned();
    let mut last = None;
    for segment in path.split('.') {
        let name = segment.trim_end_matches(['[', ']', '{', '}']);
        if !name.is_empty() {
            let next = find(root, schema, name)?;
            last = Some(format!("{type_path}.{name}"));
            let (type_name, below) = follow(root, next);
            type_path = type_name.map_or_else(|| type_path.clone(), ToOwned::to_owned);
            schema = below;
        }
        for _ in 0..segment.matches("[]").count() + segment.matches("{}").count() {
            let below = if schema["items"].is_object() { &schema["items"] } else { &schema["additionalProperties"] };
            let (type_name, below) = follow(root, below);
            type_path = type_name.map_or_else(|| type_path.clone(), ToOwned::to_owned);
            schema = below;
        }
    }
    last
}

/// Returns a field of a type or of one of its variants.
pub(super) fn find<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    if let Some(field) = schema["properties"].get(name) {
        return Some(field);
    }
    let variants = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    variants.into_iter().find_map(|variant| resolve(root, variant)["properties"].get(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn positions_are_named_by_type_and_field() {
        let root = json!({
            "title": "Web",
            "properties": { "spec": { "$ref": "#/$defs/WebSpec" } },
            "$defs": {
                "WebSpec": {
                    "properties": {
                        "hosts": { "type": "array", "items": { "$ref": "#/$defs/Host" } },
                        "main": { "anyOf": [{ "$ref": "#/$defs/Host" }, { "type": "null" }] },
                    },
                },
                "Host": { "properties": { "name": {}, "ports": { "additionalProperties": { "type": "integer" } } } },
            },
        });
        for (path, expected) in [
            ("spec", Some("Web.spec")),
            ("spec.hosts", Some("WebSpec.hosts")),
            ("spec.hosts[].name", Some("Host.name")),
            ("spec.main.ports{}", Some("Host.ports")),
            ("spec.nothing", None),
            ("names.plural", None),
        ] {
            assert_eq!(field(&root, path).as_deref(), expected, "{path}");
        }
    }
}
