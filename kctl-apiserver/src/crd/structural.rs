//! What a schema in a `CustomResourceDefinition` must be: structural, of the keywords that are supported, and with
//! defaults that are valid. Reads the schema and hands on what the real server refuses.
//!
//! Upstream: `pkg/apis/apiextensions/validation` and `structural-schema/validation.go` of apiextensions-apiserver.

use serde_json::{Map, Value};

use super::{pattern, statements, validate};
use crate::cause::Cause;
use crate::schema::Schema;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The keywords of JSON schema that no schema may use.
const UNSUPPORTED: [&str; 6] = ["definitions", "dependencies", "patternProperties", "additionalItems", "id", "$ref"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field,
    Items,
    /// The metadata of the root.
    Metadata,
}

/// Checks the schema of a version, from its root.
pub(super) fn check(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let before = errors.len();
    if schema["nullable"] == true {
        errors.push(Cause::forbidden(&format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    node(schema, path, Place::Root, errors);
    root_fields(schema, path, errors);
    // Rules are about a schema that is right.
    if errors.len() == before {
        statements::check(schema, path, errors);
    }
}

fn root_fields(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    if schema["additionalProperties"].is_object() {
        errors.push(Cause::forbidden(&format!("{path}.additionalProperties"), "must not be used at the root"));
    }
    for name in ["apiVersion", "kind"] {
        if !schema["properties"][name]["default"].is_null() {
            let field = format!("{path}.properties[{name}].default");
            errors.push(Cause::forbidden(&field, &format!("must not be set in top-level {name}")));
        }
    }
    for (name, expected) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        let r#type = &schema["properties"][name]["type"];
        if r#type.as_str().is_some_and(|r#type| r#type != expected) {
            let field = format!("{path}.properties[{name}].type");
            errors.push(Cause::invalid(&field, r#type, &format!("must be {expected}")));
        }
    }
    let Some(metadata) = schema["properties"]["metadata"].as_object() else { return };
    let allowed = |name: &String| ["type", "description", "properties", "default"].contains(&name.as_str());
    let fields = metadata.get("properties").and_then(Value::as_object);
    let named = fields.into_iter().flat_map(Map::keys).all(|name| ["name", "generateName"].contains(&name.as_str()));
    if !named || !metadata.keys().all(allowed) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(Cause::forbidden(&format!("{path}.properties[metadata]"), detail));
    }
}

fn node(schema: &Value, path: &str, place: Place, errors: &mut Vec<Cause>) {
    keywords(schema, path, errors);
    r#type(schema, path, place, errors);
    extensions(schema, path, errors);
    list_map(schema, path, errors);
    default(schema, path, place, errors);
    let is_int_or_string = schema["x-kubernetes-int-or-string"] == true && names_integer_and_string(&schema["anyOf"]);
    let names_types = |one: &Value| {
        schema["x-kubernetes-int-or-string"] == true
            && one.as_object().is_some_and(|one| one.len() == 1)
            && names_integer_and_string(&one["anyOf"])
    };
    for key in ["anyOf", "oneOf", "allOf"] {
        let all = schema[key].as_array().filter(|_| !(key == "anyOf" && is_int_or_string));
        for (i, one) in all.into_iter().flatten().enumerate() {
            if !(key == "allOf" && i == 0 && names_types(one)) {
                alternative(one, &format!("{path}.{key}[{i}]"), errors);
            }
        }
    }
    if schema["not"].is_object() {
        alternative(&schema["not"], &format!("{path}.not"), errors);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_metadata = place == Place::Root && name == "metadata";
        let place = if is_metadata { Place::Metadata } else { Place::Field };
        node(field, &format!("{path}.properties[{name}]"), place, errors);
    }
    if schema["items"].is_object() {
        node(&schema["items"], &format!("{path}.items"), Place::Items, errors);
    }
    if schema["additionalProperties"].is_object() {
        node(&schema["additionalProperties"], &format!("{path}.additionalProperties"), Place::Field, errors);
    }
}

fn keywords(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let mut forbid = |key: &str, detail: &str| errors.push(Cause::forbidden(&format!("{path}.{key}"), detail));
    for key in UNSUPPORTED {
        if schema.get(key).is_some_and(|value| !value.is_null()) {
            forbid(key, &format!("{key} is not supported"));
        }
    }
    if schema["uniqueItems"] == true {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        forbid("uniqueItems", detail);
    }
    if (schema["additionalProperties"].is_object() || schema["additionalProperties"] == false)
        && schema["properties"].as_object().is_some_and(|all| !all.is_empty())
    {
        forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
    }
    if schema["items"].is_array() {
        forbid("items", "items must be a schema object and not an array");
    }
    if schema.get("$schema").is_some_and(|schema| !schema.is_null()) {
        // Upstream names the root wherever it stands.
        let root = path.find("openAPIV3Schema").map_or(path, |i| &path[..i + "openAPIV3Schema".len()]);
        errors.push(Cause::invalid(root, &"".into(), "OpenAPIV3Schema 'schema' is not supported"));
    }
    pattern_of(schema, path, errors);
}

fn pattern_of(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    if let Some(text) = schema["pattern"].as_str().filter(|text| !pattern::is_valid(text)) {
        let detail = format!("must be a valid regular expression, but isn't: error parsing regexp: `{text}`");
        errors.push(Cause::invalid(&format!("{path}.pattern"), &text.into(), &detail));
    }
}

fn r#type(schema: &Value, path: &str, place: Place, errors: &mut Vec<Cause>) {
    let field = format!("{path}.type");
    let is_free =
        schema["x-kubernetes-int-or-string"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true;
    let Some(name) = schema["type"].as_str().filter(|name| !name.is_empty()) else {
        let place = match place {
            Place::Root => "at the root",
            Place::Items => "for specified array items",
            Place::Field | Place::Metadata => "for specified object fields",
        };
        if !is_free && schema.get("$ref").is_none() {
            errors.push(Cause::required(&field, &format!("must not be empty {place}")));
        }
        return;
    };
    if place == Place::Root && name != "object" {
        errors.push(Cause::invalid(&field, &name.into(), "must be object at the root"));
    }
    if !TYPES.contains(&name) {
        errors.push(Cause::not_supported(&field, &name.into(), &TYPES.map(str::to_owned)));
    }
    if name == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(Cause::forbidden(&field, detail));
    }
    if name == "array" && schema["items"].is_null() {
        errors.push(Cause::required(&format!("{path}.items"), "must be specified"));
    }
}

fn extensions(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let type_name = schema["type"].as_str().unwrap_or_default();
    let at = |key: &str| format!("{path}.{key}");
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let field = at("x-kubernetes-preserve-unknown-fields");
        errors.push(Cause::invalid(&field, &false.into(), "must be true or undefined"));
    }
    if schema["x-kubernetes-int-or-string"] == true && schema["x-kubernetes-preserve-unknown-fields"] == true {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        errors.push(Cause::invalid(&at("x-kubernetes-preserve-unknown-fields"), &true.into(), detail));
    }
    if schema["x-kubernetes-embedded-resource"] == true {
        let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
        if !has_fields && schema["x-kubernetes-preserve-unknown-fields"] != true {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            errors.push(Cause::required(&at("properties"), detail));
        }
        if type_name != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(Cause::invalid(&at("type"), &type_name.into(), detail));
        }
        if schema["additionalProperties"].is_object() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(Cause::forbidden(&at("additionalProperties"), detail));
        }
        for (name, expected) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            let found = &schema["properties"][name]["type"];
            if found.as_str().is_some_and(|found| found != expected) {
                let field = at(&format!("properties[{name}].type"));
                errors.push(Cause::invalid(&field, found, &format!("must be {expected}")));
            }
        }
    }
    for (key, expected, values) in [
        ("x-kubernetes-list-type", "array", ["atomic", "set", "map"].as_slice()),
        ("x-kubernetes-map-type", "object", ["atomic", "granular"].as_slice()),
    ] {
        let value = &schema[key];
        let Some(text) = value.as_str() else { continue };
        if type_name != expected {
            let detail = format!("must be {expected} if {key} is specified");
            errors.push(Cause::invalid(&at("type"), &type_name.into(), &detail));
        }
        if !values.contains(&text) {
            let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
            errors.push(Cause::not_supported(&at(key), value, &values));
        }
    }
}

/// Checks the items of sets and maps, and the keys of maps.
fn list_map(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let list_type = schema["x-kubernetes-list-type"].as_str().unwrap_or_default();
    let keys_path = format!("{path}.x-kubernetes-list-map-keys");
    let keys = schema["x-kubernetes-list-map-keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (items, items_path) = (&schema["items"], format!("{path}.items"));
    if !keys.is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(Cause::required(&format!("{path}.x-kubernetes-list-type"), detail));
    }
    if !items.is_object() || !["set", "map"].contains(&list_type) {
        return;
    }
    if items["nullable"] == true {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Cause::forbidden(&format!("{items_path}.nullable"), &detail));
    }
    if list_type == "set" {
        if items["type"] == "array" && !["atomic", ""].contains(&items["x-kubernetes-list-type"].as_str().unwrap_or(""))
        {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let field = format!("{items_path}.x-kubernetes-list-type");
            errors.push(Cause::invalid(&field, &items["x-kubernetes-list-type"], detail));
        }
        if items["type"] == "object" && items["x-kubernetes-map-type"] != "atomic" {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let field = format!("{items_path}.x-kubernetes-map-type");
            errors.push(Cause::invalid(&field, &items["x-kubernetes-map-type"], detail));
        }
        return;
    }
    if keys.is_empty() {
        errors.push(Cause::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(Cause::invalid(&format!("{items_path}.type"), &items["type"], detail));
        return;
    }
    for (i, key) in keys.iter().enumerate() {
        map_key(items, key.as_str().unwrap_or_default(), &items_path, errors).unwrap_or_else(|| {
            let detail = "entries must all be names of item properties";
            errors.push(Cause::invalid(&keys_path, &schema["x-kubernetes-list-map-keys"], detail));
        });
        if keys[..i].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(Cause::invalid(&keys_path, &schema["x-kubernetes-list-map-keys"], detail));
        }
    }
}

/// Checks a key of a map; there is nothing to check if it is no field of the items.
fn map_key(items: &Value, key: &str, path: &str, errors: &mut Vec<Cause>) -> Option<()> {
    let field = items["properties"].get(key)?;
    let path = format!("{path}.properties[{key}]");
    if ["object", "array"].contains(&field["type"].as_str().unwrap_or_default()) {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(Cause::invalid(&format!("{path}.type"), &field["type"], detail));
    }
    if field["nullable"] == true {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(Cause::forbidden(&format!("{path}.nullable"), detail));
    }
    let is_required = items["required"].as_array().is_some_and(|all| all.iter().any(|name| name == key));
    if !is_required && field["default"].is_null() {
        let detail =
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(Cause::required(&format!("{path}.default"), detail));
    }
    Some(())
}

fn default(schema: &Value, path: &str, place: Place, errors: &mut Vec<Cause>) {
    let value = &schema["default"];
    if value.is_null() {
        return;
    }
    let field = format!("{path}.default");
    if place == Place::Metadata {
        errors.push(Cause::forbidden(&field, "must not be set in top-level metadata"));
        return;
    }
    let cursor = Schema::structural(schema);
    let mut pruned = value.clone();
    if !super::prune::values(cursor, &mut pruned).is_empty() {
        errors.push(Cause::invalid(&field, value, "must not have unknown fields"));
        return;
    }
    if place == Place::Root {
        let missing = ["apiVersion", "kind"].into_iter().filter(|&name| value.get(name).is_none());
        errors.extend(missing.map(|name| Cause::required(&format!("{field}.{name}"), "")));
    }
    for mut error in validate::validate(cursor, value, None) {
        match error.field.as_str() {
            "" => error.field.clone_from(&field),
            "<nil>" => {}
            below if below.starts_with('[') => error.field = format!("{field}{below}"),
            below => error.field = format!("{field}.{below}"),
        }
        errors.push(error);
    }
}

/// The one `anyOf` that may name types.
fn names_integer_and_string(any_of: &Value) -> bool {
    let types = any_of.as_array().into_iter().flatten().map(|one| one["type"].as_str());
    types.eq([Some("integer"), Some("string")])
}

/// Inside `anyOf`, `oneOf`, `allOf` and `not` only validation may stand.
fn alternative(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let mut forbid = |key: &str, detail: &str| errors.push(Cause::forbidden(&format!("{path}.{key}"), detail));
    for key in ["additionalProperties", "default"] {
        if schema.get(key).is_some_and(|value| !value.is_null()) {
            forbid(key, "must be undefined to be structural");
        }
    }
    for key in ["description", "title", "type"] {
        if schema[key].as_str().is_some_and(|text| !text.is_empty()) {
            forbid(key, "must be empty to be structural");
        }
    }
    for key in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if schema[key] == true {
            forbid(key, "must be false to be structural");
        }
    }
    for key in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if schema[key].is_string() {
            forbid(key, "must be undefined to be structural");
        }
    }
    for key in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if schema[key].as_array().is_some_and(|all| !all.is_empty()) {
            forbid(key, "must be empty to be structural");
        }
    }
    if !schema["properties"]["metadata"].is_null() {
        forbid("properties[metadata]", "must not be specified in a nested context");
    }
    pattern_of(schema, path, errors);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        alternative(field, &format!("{path}.properties[{name}]"), errors);
    }
    if schema["items"].is_object() {
        alternative(&schema["items"], &format!("{path}.items"), errors);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for (i, one) in schema[key].as_array().into_iter().flatten().enumerate() {
            alternative(one, &format!("{path}.{key}[{i}]"), errors);
        }
    }
    if schema["not"].is_object() {
        alternative(&schema["not"], &format!("{path}.not"), errors);
    }
}
