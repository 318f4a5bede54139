//! Applies the markers of `#[kctl(…)]` to a JSON schema.
//!
//! The attribute checks the markers and writes them as JSON into a `schemars` transform. This file changes
//! the schema that schemars derived: bounds, formats, list types and CEL rules. A marker of an `Option` field
//! applies to its value, and `items` and `values` lead into lists and maps.

use schemars::{Schema, transform::Transform};
use serde_json::{Map, Value, json};

/// Schema key that carries markers of the whole object until the CRD is built. It is removed there, because
/// API servers do not know it.
pub(crate) const ROOT: &str = "x-kctl-root";

/// Schema key next to a `format` that a marker set, to tell it from the format of the Rust type.
pub(crate) const FORMAT: &str = "x-kctl-format";

/// A schema transform with the markers of one field or type, as JSON.
#[derive(Debug)]
pub struct Markers(pub &'static str);

impl Transform for Markers {
    fn transform(&mut self, schema: &mut Schema) {
        match serde_json::from_str(self.0) {
            Ok(Value::Object(markers)) => apply(&markers, schema.ensure_object()),
            // A schema without its bounds and rules would be accepted silently.
            invalid => panic!("`#[kctl(…)]` generates a JSON object, and not {}: {invalid:?}", self.0),
        }
    }
}

/// Markers with a single schema key, of the same value.
const PLAIN: [(&str, &str); 8] = [
    ("default", "default"),
    ("docs", "externalDocs"),
    ("example", "example"),
    ("format", "format"),
    ("map", "x-kubernetes-map-type"),
    ("multiple_of", "multipleOf"),
    ("pattern", "pattern"),
    ("title", "title"),
];

/// Markers of bounds, and their schema keys.
const BOUNDS: [(&str, &str); 10] = [
    ("exclusive_maximum", "maximum"),
    ("exclusive_minimum", "minimum"),
    ("max_items", "maxItems"),
    ("max_length", "maxLength"),
    ("max_properties", "maxProperties"),
    ("maximum", "maximum"),
    ("min_items", "minItems"),
    ("min_length", "minLength"),
    ("min_properties", "minProperties"),
    ("minimum", "minimum"),
];

/// Applies markers to the schema of a field. The value inside an `Option` gets them rather than the `anyOf`
/// around it, which is overwritten when the alternatives are joined.
fn apply(markers: &Map<String, Value>, schema: &mut Map<String, Value>) {
    if markers.contains_key("schemaless") {
        schema.retain(|key, _| key == "description");
    }
    if markers.contains_key("choices") {
        list_choices(schema);
    }
    // Keywords next to the `anyOf` of an `Option` would be overwritten when its alternatives are joined.
    let is_option = schema.get("anyOf").and_then(Value::as_array).is_some_and(
        |all| matches!(all.as_slice(), [Value::Object(value), null] if is_null(null) && !value.contains_key("$ref")),
    );
    let value = schema.get_mut("anyOf").filter(|_| is_option).and_then(|all| all.get_mut(0));
    match value.and_then(Value::as_object_mut) {
        Some(value) => apply_to_value(markers, value),
        None => apply_to_value(markers, schema),
    }
    match markers.get("nullable").and_then(Value::as_bool) {
        Some(true) => drop(schema.insert("nullable".into(), true.into())),
        Some(false) => never_null(schema),
        None if markers.contains_key("omitted") && is_choice(schema) => never_null(schema),
        None => {}
    }
}

/// Writes the values of an enum as one list. schemars writes a variant for each value with a doc comment, and does not
/// recognize the keys of a map in variants: the CRD would accept any key, and the program not read the object.
fn list_choices(schema: &mut Map<String, Value>) {
    if !schema.contains_key("oneOf") {
        return;
    }
    if let Some((name, values)) = allowed_values(schema) {
        schema.remove("oneOf");
        schema.insert("type".into(), name);
        schema.insert("enum".into(), values.into());
    }
}

/// Returns `true` if the schema, or the schema of an `Option`'s value, lists its allowed values.
fn is_choice(schema: &Map<String, Value>) -> bool {
    let value = schema.get("anyOf").and_then(Value::as_array).and_then(|all| all.first()?.as_object());
    schema.contains_key("enum") || value.is_some_and(|value| allowed_values(value).is_some())
}

/// Applies markers to a schema that is not an `Option`, then the markers of its items and values.
fn apply_to_value(markers: &Map<String, Value>, schema: &mut Map<String, Value>) {
    for (name, key) in PLAIN {
        if let Some(value) = markers.get(name) {
            schema.insert(key.into(), value.clone());
        }
    }
    if let Some(allowed) = markers.get("allowed") {
        restrict_values(schema, allowed);
    }
    for (name, key) in BOUNDS {
        if let Some(bound) = markers.get(name) {
            tighten_bound(schema, name, key, bound);
        }
    }
    if markers.contains_key("format") {
        schema.insert(FORMAT.into(), true.into());
    }
    shape(markers, schema);
    rules(markers, schema);
    for (name, key, of) in [("items", "items", "array"), ("values", "additionalProperties", "object")] {
        let inner = markers.get(name).and_then(Value::as_object);
        // With `type_`, JSON of any form becomes a list or a map, whose items or values have no schema yet.
        let has_type = schema.get("type").is_some_and(|ty| ty == of) && !schema.contains_key("properties");
        if inner.is_some() && has_type {
            schema.entry(key).or_insert(Value::Bool(true));
        }
        let Some(below) = schema.get_mut(key) else { continue };
        if *below == Value::Bool(true) {
            // schemars writes `true` for a schema that accepts anything.
            *below = Value::Object(Map::new());
        }
        let Some(inner) = inner else { continue };
        if let Some(below) = below.as_object_mut() {
            apply(inner, below);
        } else if key == "additionalProperties" {
            // The keys are an enum, and schemars writes a property for each of them.
            let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
            let values = properties.into_iter().flat_map(|properties| properties.values_mut());
            for value in values.filter_map(Value::as_object_mut) {
                apply(inner, value);
            }
        }
    }
    if let Some(root) = markers.get("root") {
        schema.insert(ROOT.into(), root.clone());
    }
}

/// Sets the bound of a marker unless the schema has a tighter one, such as `maxLength: 1` of a `char`.
///
/// With a looser bound, an API server would store values that the Rust type can't read.
fn tighten_bound(schema: &mut Map<String, Value>, name: &str, key: &str, bound: &Value) {
    let is_exclusive = name.starts_with("exclusive_");
    let present = schema.get(key).and_then(Value::as_f64);
    if let (Some(present), Some(given)) = (present, bound.as_f64()) {
        let order = if key.starts_with("min") { given.total_cmp(&present) } else { present.total_cmp(&given) };
        if order.is_lt() || (order.is_eq() && !is_exclusive) {
            return;
        }
    }
    schema.insert(key.into(), bound.clone());
    let exclusive = match key {
        "minimum" => "exclusiveMinimum",
        "maximum" => "exclusiveMaximum",
        _ => return,
    };
    if is_exclusive {
        schema.insert(exclusive.into(), true.into());
    } else if present.is_some() {
        // It belonged to the bound that was replaced.
        schema.remove(exclusive);
    }
}

/// Sets the allowed values. If the type lists its values already, such as an enum, only those remain that it can read.
fn restrict_values(schema: &mut Map<String, Value>, allowed: &Value) {
    let mut values = allowed.as_array().cloned().unwrap_or_default();
    if let Some(Value::Array(present)) = schema.get("enum") {
        values.retain(|value| value.is_null() || present.contains(value));
    }
    // API servers read an empty list as no restriction.
    let values = if values.is_empty() { allowed.clone() } else { values.into() };
    schema.insert("enum".into(), values);
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null" || schema["enum"] == json!([null])
}

/// Applies the markers that decide the type, and how values are merged and pruned.
fn shape(markers: &Map<String, Value>, schema: &mut Map<String, Value>) {
    if let Some(name) = markers.get("type_") {
        schema.insert("type".into(), name.clone());
    }
    if markers.contains_key("int_or_string") {
        schema.retain(|key, _| !["type", "format", "properties", "required", "anyOf"].contains(&key.as_str()));
        schema.insert("x-kubernetes-int-or-string".into(), true.into());
    }
    if markers.contains_key("embedded") {
        schema.insert("type".into(), "object".into());
        schema.insert("x-kubernetes-embedded-resource".into(), true.into());
        if schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) {
            schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        }
    }
    if markers.contains_key("preserve_unknown") || markers.contains_key("schemaless") {
        schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        if schema.get("additionalProperties").is_some_and(Value::is_boolean) {
            schema.remove("additionalProperties");
        }
    }
    match markers.get("list") {
        Some(keys @ Value::Array(_)) => {
            schema.insert("x-kubernetes-list-type".into(), "map".into());
            schema.insert("x-kubernetes-list-map-keys".into(), keys.clone());
        }
        Some(name) => {
            schema.insert("x-kubernetes-list-type".into(), name.clone());
            schema.remove("uniqueItems");
        }
        None => {}
    }
}

/// Appends the CEL rules of the markers to those that the type has.
fn rules(markers: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let found = rules_of(markers);
    if found.is_empty() {
        return;
    }
    let all = schema.entry("x-kubernetes-validations").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all) = all {
        all.extend(found);
    }
}

/// Returns the CEL rules that implement the markers, such as `self == oldSelf` for `immutable`.
pub(crate) fn rules_of(markers: &Map<String, Value>) -> Vec<Value> {
    let list = |name: &str| markers.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    if markers.contains_key("immutable") {
        found.push(json!({ "rule": "self == oldSelf", "message": "the value can't be changed" }));
    }
    for (name, test, words) in [
        ("at_most_one_of", "<= 1", "at most one"),
        ("exactly_one_of", "== 1", "exactly one"),
        ("at_least_one_of", ">= 1", "at least one"),
    ] {
        for fields in list(name) {
            let names: Vec<&str> = fields.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let has: Vec<String> = names.iter().map(|name| format!("has(self.{})", kctl_cel::escape(name))).collect();
            let rule = format!("[{}].filter(present, present).size() {test}", has.join(", "));
            found.push(json!({ "rule": rule, "message": format!("{words} of {} must be set", names.join(", ")) }));
        }
    }
    found.extend(list("rule").cloned());
    found
}

/// Removes `null` from the allowed types and values.
fn never_null(schema: &mut Map<String, Value>) {
    schema.remove("nullable");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            schema.insert("type".into(), name);
        }
    }
    if let Some(Value::Array(allowed)) = schema.get_mut("enum") {
        allowed.retain(|value| !value.is_null());
    }
    let Some(Value::Array(all)) = schema.get_mut("anyOf") else { return };
    all.retain(|one| !is_null(one));
    if let [Value::Object(value)] = all.as_slice() {
        let value = value.clone();
        schema.remove("anyOf");
        for (key, value) in value {
            schema.entry(key).or_insert(value);
        }
    }
}

/// Returns the type and the values of a schema that allows a few values.
///
/// schemars lists the values of an enum, and writes a variant for each value that has a doc comment.
pub(crate) fn allowed_values(schema: &Map<String, Value>) -> Option<(Value, Vec<Value>)> {
    let values_of = |one: &Value| -> Option<Vec<Value>> {
        match (one.get("enum"), one.get("const")) {
            (Some(Value::Array(all)), _) => Some(all.clone()),
            (_, Some(value)) => Some(vec![value.clone()]),
            _ => None,
        }
    };
    if let Some(Value::Array(variants)) = schema.get("oneOf") {
        let name = variants.first()?.get("type")?;
        let all: Option<Vec<_>> =
            variants.iter().map(|one| values_of(one).filter(|_| one.get("type") == Some(name))).collect();
        return Some((name.clone(), all?.concat()));
    }
    let name = schema.get("type")?.as_str()?;
    Some((name.into(), values_of(&Value::Object(schema.clone()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_apply_to_the_value_inside_an_option() {
        let option = json!({ "anyOf": [{ "type": "object", "x-kubernetes-validations": [{ "rule": "a" }] }, { "type": "null" }] });
        for (schema, text, expected) in [
            (json!({ "type": "string" }), r#"{"min_length":1}"#, json!({ "type": "string", "minLength": 1 })),
            (
                json!({ "type": ["integer", "null"] }),
                r#"{"exclusive_minimum":0,"nullable":false}"#,
                json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": true }),
            ),
            (
                option.clone(),
                r#"{"rule":[{"rule":"b"}]}"#,
                json!({
                    "anyOf": [
                        { "type": "object", "x-kubernetes-validations": [{ "rule": "a" }, { "rule": "b" }] },
                        { "type": "null" },
                    ],
                }),
            ),
            (
                option,
                r#"{"nullable":false}"#,
                json!({ "type": "object", "x-kubernetes-validations": [{ "rule": "a" }] }),
            ),
            (
                json!({ "description": "A mode.", "oneOf": [
                    { "type": "string", "enum": ["C"] },
                    { "type": "string", "const": "A", "description": "First." },
                ] }),
                r#"{"choices":true}"#,
                json!({ "description": "A mode.", "type": "string", "enum": ["C", "A"] }),
            ),
            (
                json!({ "oneOf": [{ "type": "object", "properties": { "type": { "const": "A" } } }] }),
                r#"{"choices":true}"#,
                json!({ "oneOf": [{ "type": "object", "properties": { "type": { "const": "A" } } }] }),
            ),
        ] {
            check(&schema, text, &expected);
        }
    }

    #[test]
    fn tighter_bound_of_the_type_is_kept() {
        let character = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 1 });
        let pair = json!({ "type": "array", "items": {}, "minItems": 2, "maxItems": 2 });
        let above_0 = json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": true });
        for (schema, text, expected) in [
            (character.clone(), r#"{"min_length":0,"max_length":5}"#, character),
            (pair.clone(), r#"{"min_items":1,"max_items":5}"#, pair),
            (
                json!({ "type": "integer", "minimum": 1 }),
                r#"{"minimum":0}"#,
                json!({ "type": "integer", "minimum": 1 }),
            ),
            (
                json!({ "type": "integer", "minimum": 1 }),
                r#"{"exclusive_minimum":0}"#,
                json!({ "type": "integer", "minimum": 1 }),
            ),
            (
                json!({ "type": "integer", "minimum": 1 }),
                r#"{"exclusive_minimum":1}"#,
                json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
            ),
            (
                json!({ "type": "integer", "maximum": 255 }),
                r#"{"maximum":9}"#,
                json!({ "type": "integer", "maximum": 9 }),
            ),
            (above_0.clone(), r#"{"minimum":0}"#, above_0.clone()),
            (above_0, r#"{"minimum":5}"#, json!({ "type": "integer", "minimum": 5 })),
        ] {
            check(&schema, text, &expected);
        }
    }

    #[test]
    fn allowed_values_add_none_to_an_enum() {
        for (schema, text, expected) in [
            (
                json!({ "type": "string", "enum": ["A", "B"] }),
                r#"{"allowed":["A","C"]}"#,
                json!({ "type": "string", "enum": ["A"] }),
            ),
            (
                json!({ "type": ["string", "null"], "enum": ["A", "B", null] }),
                r#"{"allowed":["B"]}"#,
                json!({ "type": ["string", "null"], "enum": ["B"] }),
            ),
            (
                json!({ "type": "string", "enum": ["A"] }),
                r#"{"allowed":["C"]}"#,
                json!({ "type": "string", "enum": ["C"] }),
            ),
            (json!({ "type": "string" }), r#"{"allowed":["C"]}"#, json!({ "type": "string", "enum": ["C"] })),
        ] {
            check(&schema, text, &expected);
        }
    }

    #[test]
    fn markers_of_items_and_values_apply_inside() {
        for (schema, text, expected) in [
            (
                json!({ "type": "object", "additionalProperties": false, "properties": { "A": { "type": "integer" } } }),
                r#"{"values":{"maximum":5}}"#,
                json!({
                    "type": "object",
                    "additionalProperties": false,
                    "properties": { "A": { "type": "integer", "maximum": 5 } },
                }),
            ),
            (
                json!({}),
                r#"{"type_":"array","items":{"type_":"string","min_length":1}}"#,
                json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
            ),
            (
                json!({}),
                r#"{"type_":"object","values":{"type_":"integer"}}"#,
                json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            ),
            (
                json!({ "type": "object", "properties": { "a": {} } }),
                r#"{"items":{"minimum":1},"values":{"minimum":1}}"#,
                json!({ "type": "object", "properties": { "a": {} } }),
            ),
            (
                json!({ "type": "array", "items": { "type": "string" } }),
                r#"{"list":"set","items":{"pattern":"^a"}}"#,
                json!({
                    "type": "array", "items": { "type": "string", "pattern": "^a" }, "x-kubernetes-list-type": "set",
                }),
            ),
        ] {
            check(&schema, text, &expected);
        }
    }

    fn check(schema: &Value, text: &str, expected: &Value) {
        let markers = serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let mut schema = schema.as_object().unwrap().clone();
        apply(&markers, &mut schema);
        assert_eq!(Value::Object(schema), *expected, "{text}");
    }

    #[test]
    #[should_panic(expected = "`#[kctl(…)]` generates a JSON object")]
    fn invalid_markers_are_not_dropped() {
        Markers(r#"{"minimum":1.}"#).transform(&mut Schema::default());
    }
}
