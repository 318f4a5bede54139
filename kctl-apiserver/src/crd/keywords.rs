//! Validates the keywords of a CRD schema and their combinations.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver,
//! `pkg/apis/apiextensions/validation`.
//!
//! These rules look at the JSON schema as the client wrote it, while `structural` looks at its form
//! as a structural schema. Upstream runs both; a schema can have both kinds of errors. Extensions
//! (`x-kubernetes-…`) are validated here as far as they need one schema and its items.

use serde_json::Value;

use super::{statements, structural::ALTERNATIVES};
use crate::field_errors::{Errors, FieldError, text};

/// The types that a schema may have; `null` is not among them.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// JSON schema keywords that CRDs do not support (`FieldValueForbidden`).
const UNSUPPORTED: [&str; 6] = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// The position of a schema, which decides the keywords that it may have.
///
/// Inherited by the schemas below, with the changes that `children` makes.
#[derive(Clone, Copy, Default)]
struct SchemaPosition {
    /// Never inherited.
    is_root: bool,
    /// Inside `metadata`, `kind` or `apiVersion` of an object.
    is_in_meta: bool,
    /// Below metadata, kind or apiVersion of the root, or in the values of a map there: defaults are not allowed.
    has_no_defaults: bool,
}

/// Checks the schema of a version, from its root.
///
/// `path` is that of the schema in the CRD.
pub(super) fn check(schema: &Value, path: &str, errors: &mut Errors) {
    node(schema, path, SchemaPosition { is_root: true, ..SchemaPosition::default() }, errors);
}

/// Checks a schema and those below it.
fn node(schema: &Value, path: &str, position: SchemaPosition, errors: &mut Errors) {
    supported(schema, path, position, errors);
    if schema["uniqueItems"] == true {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.forbidden(&format!("{path}.uniqueItems"), detail);
    }
    children(schema, path, position, errors);
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.invalid(&field, &false.into(), "must be true or undefined");
    }
    map_type(schema, path, errors);
    list_type(schema, path, errors);
    map_keys(schema, path, errors);
    keys_are_there(schema, path, errors);
    statements::texts(schema, path, errors);
}

/// Rejects unknown types, and keywords that are unsupported or not allowed at this position. Zero values that Go omits
/// were removed by `normalize`.
fn supported(schema: &Value, path: &str, position: SchemaPosition, errors: &mut Errors) {
    let name = text(&schema["type"]);
    if !name.is_empty() && !TYPES.contains(&name) {
        errors.unsupported(&format!("{path}.type"), &name.into(), &TYPES);
    }
    let mut forbid = |key: &str, detail: &str| errors.forbidden(&format!("{path}.{key}"), detail);
    if position.has_no_defaults && !schema["default"].is_null() {
        forbid("default", "must not be set in apiVersion, kind and metadata");
    }
    for key in UNSUPPORTED.into_iter().filter(|key| !schema[key].is_null()) {
        forbid(key, &format!("{key} is not supported"));
    }
    if name == "null" {
        forbid("type", "type cannot be set to null, use nullable as an alternative");
    }
    if schema["items"].as_array().is_some_and(|all| !all.is_empty()) {
        forbid("items", "items must be a schema object and not an array");
    }
    if position.is_in_meta && schema["x-kubernetes-embedded-resource"] == true {
        forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
    }
}

/// Checks the schemas below a schema, also in unsupported keywords. Fields named `apiVersion`, `kind` and `metadata`
/// are special only in whole objects.
fn children(schema: &Value, path: &str, position: SchemaPosition, errors: &mut Errors) {
    let SchemaPosition { is_root, .. } = position;
    let position = SchemaPosition { is_root: false, ..position };
    let values = &schema["additionalProperties"];
    let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    if has_fields && (values.is_object() || *values == false) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.forbidden(&format!("{path}.additionalProperties"), detail);
    }
    if values.is_object() {
        let has_no_defaults = position.has_no_defaults || position.is_in_meta;
        node(values, &format!("{path}.additionalProperties"), SchemaPosition { has_no_defaults, ..position }, errors);
    }
    let is_object = is_root || schema["x-kubernetes-embedded-resource"] == true;
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_meta = is_object && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
        let is_in_meta = position.is_in_meta || is_meta;
        let has_no_defaults = position.has_no_defaults || (is_meta && is_root);
        let position = SchemaPosition { is_in_meta, has_no_defaults, ..position };
        node(field, &format!("{path}.properties[{name}]"), position, errors);
    }
    for key in ["not", "items"].into_iter().filter(|key| schema[key].is_object()) {
        node(&schema[key], &format!("{path}.{key}"), position, errors);
    }
    for key in ALTERNATIVES.into_iter().chain(["items"]) {
        for (index, child) in schema[key].as_array().into_iter().flatten().enumerate() {
            node(child, &format!("{path}.{key}[{index}]"), position, errors);
        }
    }
    for key in ["definitions", "dependencies"] {
        let children = schema[key].as_object().into_iter().flatten();
        for (name, child) in children.filter(|(_, child)| child.is_object()) {
            node(child, &format!("{path}.{key}[{name}]"), position, errors);
        }
    }
}

/// Returns an error unless the schema has the type that the keyword `key` requires.
fn of_type(schema: &Value, path: &str, expected: &str, key: &str) -> Option<FieldError> {
    let (field, name) = (format!("{path}.type"), text(&schema["type"]));
    let detail = format!("must be {expected} if {key} is specified");
    match name {
        _ if name == expected => None,
        "" => Some(FieldError::required(&field, &detail)),
        _ => Some(FieldError::invalid(&field, &name.into(), &detail)),
    }
}

/// Returns an error if a keyword has a value that is not supported.
fn one_of(schema: &Value, path: &str, key: &str, supported: &[&str]) -> Option<FieldError> {
    let value = schema[key].as_str().filter(|value| !supported.contains(value))?;
    Some(FieldError::not_supported(&format!("{path}.{key}"), &value.into(), supported))
}

/// Checks `x-kubernetes-map-type`, which is for objects only.
fn map_type(schema: &Value, path: &str, errors: &mut Errors) {
    let key = "x-kubernetes-map-type";
    if schema[key].is_string() {
        errors.extend(of_type(schema, path, "object", key));
        errors.extend(one_of(schema, path, key, &["atomic", "granular"]));
    }
}

/// Checks `x-kubernetes-list-type`, which is for arrays only.
fn list_type(schema: &Value, path: &str, errors: &mut Errors) {
    let key = "x-kubernetes-list-type";
    let Some(value) = schema[key].as_str() else { return };
    match of_type(schema, path, "array", key) {
        Some(error) => errors.push(error),
        None if value == "set" => errors.extend(item_of_set(&schema["items"], &format!("{path}.items"))),
        None => {}
    }
    errors.extend(one_of(schema, path, key, &["atomic", "set", "map"]));
}

/// Checks that items of a set are scalar or atomic, because a set compares whole items. Objects are granular by default
/// and must be declared `atomic`; arrays are atomic by default.
fn item_of_set(items: &Value, path: &str) -> Option<FieldError> {
    let list_type = &items["x-kubernetes-list-type"];
    let key = match text(&items["type"]) {
        "array" if !list_type.is_null() && list_type != "atomic" => "x-kubernetes-list-type",
        "object" if items["x-kubernetes-map-type"] != "atomic" => "x-kubernetes-map-type",
        _ => return None,
    };
    Some(FieldError::invalid(&format!("{path}.{key}"), &items[key], "must be atomic for the items of a set"))
}

/// Checks `x-kubernetes-list-map-keys`: distinct scalar properties of the items, which are objects. A map list needs at
/// least one.
fn map_keys(schema: &Value, path: &str, errors: &mut Errors) {
    let (list_type, items) = (&schema["x-kubernetes-list-type"], &schema["items"]);
    let keys = schema["x-kubernetes-list-map-keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let keys_path = format!("{path}.x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != "map" {
        let (field, detail) =
            (format!("{path}.x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
        errors.push(match list_type {
            Value::Null => FieldError::required(&field, detail),
            other => FieldError::invalid(&field, other, detail),
        });
    }
    if list_type != "map" {
        return;
    }
    if keys.is_empty() {
        errors.required(&keys_path, "must not be empty if x-kubernetes-list-type is map");
    }
    if items.is_null() {
        errors.required(&format!("{path}.items"), "must have a schema if x-kubernetes-list-type is map");
    }
    if !items.is_object() {
        return;
    }
    if text(&items["type"]) != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.invalid(&format!("{path}.items.type"), &text(&items["type"]).into(), detail);
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items["properties"].get(name) {
            Some(field) if ["array", "object"].contains(&text(&field["type"])) => {
                let field_path = format!("{path}.items.properties[{name}].type");
                errors.invalid(&field_path, &field["type"], "must be a scalar type for a key of a list of type map");
            }
            Some(_) => {}
            None => errors.invalid(&keys_path, key, "must be a property of the items"),
        }
        if keys[..index].contains(key) {
            errors.invalid(&keys_path, key, "must not be named twice");
        }
    }
}

/// Checks that items of sets and maps are not nullable and that keys of map lists are required or have a default: two
/// items without a key could not be distinguished. A missing property was reported by `map_keys`.
fn keys_are_there(schema: &Value, path: &str, errors: &mut Errors) {
    let (list_type, items) = (text(&schema["x-kubernetes-list-type"]), &schema["items"]);
    if !items.is_object() || !["set", "map"].contains(&list_type) {
        return;
    }
    if items["nullable"] == true {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbidden(&format!("{path}.items.nullable"), &detail);
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array().filter(|_| list_type == "map");
    for name in keys.into_iter().flatten().filter_map(Value::as_str) {
        let Some(field) = items["properties"].get(name) else { continue };
        let field_path = format!("{path}.items.properties[{name}]");
        let is_required = items["required"].as_array().is_some_and(|all| all.iter().any(|required| required == name));
        if !is_required && field["default"].is_null() {
            errors.required(&format!("{field_path}.default"), "a key of a list needs a default or has to be required");
        }
        if field["nullable"] == true {
            errors.forbidden(&format!("{field_path}.nullable"), "a key of a list must not be nullable");
        }
    }
}
