//! Validates the keywords of a CRD schema and their combinations.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver,
//! `pkg/apis/apiextensions/validation`.
//!
//! These rules look at the JSON schema as the client wrote it, while `structural` looks at its form
//! as a structural schema. Upstream runs both; a schema can have both kinds of errors. Extensions
//! (`x-kubernetes-…`) are validated here as far as they need one schema and its items.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rule_validation;
use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
};

/// The types that a schema may have; `null` is not among them.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// JSON schema keywords that CRDs do not support (`FieldValueForbidden`).
const UNSUPPORTED: [&str; 6] = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Keywords that hold lists of alternative schemas.
pub(super) const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The position of a schema, which decides the keywords that it may have.
#[derive(Clone, Copy, Default)]
struct SchemaPosition {
    /// The root of a version's schema. Schemas below do not inherit it.
    is_root: bool,
    /// Inside `metadata`, `kind` or `apiVersion` of an object.
    is_in_meta: bool,
    /// Below metadata, kind or apiVersion of the root, or in the values of a map there: defaults are not allowed.
    has_no_defaults: bool,
}

/// Checks the schema of a version, from its root.
pub(super) fn check(schema: &Value, path: &str, errors: &mut Errors) {
    node(&Field::new(schema, path, errors), SchemaPosition { is_root: true, ..SchemaPosition::default() });
}

/// Checks a schema and those below it.
fn node(schema: &Field<'_>, position: SchemaPosition) {
    check_supported(schema, position);
    let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
    schema.at("uniqueItems").forbidden_if(schema["uniqueItems"] == true, detail);
    children(schema, position);
    let preserves = schema.at("x-kubernetes-preserve-unknown-fields");
    preserves.invalid_if(*preserves == false, "must be true or undefined");
    map_type(schema);
    list_type(schema);
    map_keys(schema);
    keys_are_there(schema);
    rule_validation::validate_rule_fields(schema);
}

/// Rejects unknown types, and keywords that are unsupported or not allowed at this position. Zero values that Go omits
/// were removed by `normalize`.
fn check_supported(schema: &Field<'_>, position: SchemaPosition) {
    let (name, default, items) = (schema.at("type"), schema.at("default"), schema.at("items"));
    name.unsupported_if(!name.is_empty() && !TYPES.contains(&name.text()), &TYPES);
    name.forbidden_if(*name == "null", "type cannot be set to null, use nullable as an alternative");
    let is_forbidden = position.has_no_defaults && !default.is_null();
    default.forbidden_if(is_forbidden, "must not be set in apiVersion, kind and metadata");
    for keyword in UNSUPPORTED.map(|key| schema.at(key)) {
        keyword.forbidden_if(!keyword.is_null(), "this keyword is not supported");
    }
    let is_list = items.as_array().is_some_and(|all| !all.is_empty());
    items.forbidden_if(is_list, "items must be a schema object and not an array");
    let embeds = schema.at("x-kubernetes-embedded-resource");
    embeds.forbidden_if(position.is_in_meta && *embeds == true, "must not be used inside of resource meta");
}

/// Checks the schemas below a schema, also in unsupported keywords. Fields named `apiVersion`, `kind` and `metadata`
/// are special only in whole objects.
fn children(schema: &Field<'_>, position: SchemaPosition) {
    let SchemaPosition { is_root, .. } = position;
    let position = SchemaPosition { is_root: false, ..position };
    let (values, fields) = (schema.at("additionalProperties"), schema.at("properties"));
    let has_both = !fields.is_empty() && (values.is_object() || *values == false);
    values.forbidden_if(has_both, "additionalProperties and properties are mutual exclusive");
    if values.is_object() {
        let has_no_defaults = position.has_no_defaults || position.is_in_meta;
        node(&values, SchemaPosition { has_no_defaults, ..position });
    }
    let is_object = is_root || schema["x-kubernetes-embedded-resource"] == true;
    for (name, field) in fields.entries() {
        let is_meta = is_object && ["apiVersion", "kind", "metadata"].contains(&name);
        let is_in_meta = position.is_in_meta || is_meta;
        let has_no_defaults = position.has_no_defaults || (is_meta && is_root);
        node(&field, SchemaPosition { is_in_meta, has_no_defaults, ..position });
    }
    let single = ["not", "items"].map(|key| schema.at(key)).into_iter();
    let listed = ALTERNATIVES.into_iter().chain(["items"]).flat_map(|key| schema.at(key).items());
    let named = ["definitions", "dependencies"].into_iter().flat_map(|key| schema.at(key).entries());
    let children = single.chain(named.map(|(_, child)| child)).filter(|child| child.is_object());
    children.chain(listed).for_each(|child| node(&child, position));
}

/// Requires the value that a keyword demands of a field.
pub(super) fn must_be(field: &Field<'_>, expected: &str, keyword: &str) {
    let detail = format!("must be {expected} if {keyword} is specified");
    field.required_with_if(field.is_null(), &detail);
    field.invalid_if(!field.is_null() && field.text() != expected, &detail);
}

/// Checks `x-kubernetes-map-type`, which is for objects only.
fn map_type(schema: &Field<'_>) {
    let key = "x-kubernetes-map-type";
    schema.at(key).when_present(|map_type| {
        must_be(&schema.at("type"), "object", key);
        map_type.one_of(&["atomic", "granular"]);
    });
}

/// Checks `x-kubernetes-list-type`, which is for arrays only.
fn list_type(schema: &Field<'_>) {
    let key = "x-kubernetes-list-type";
    schema.at(key).when_present(|list_type| {
        must_be(&schema.at("type"), "array", key);
        list_type.one_of(&["atomic", "set", "map"]);
        if schema["type"] == "array" && **list_type == "set" {
            item_of_set(&schema.at("items"));
        }
    });
}

/// Checks that items of a set are scalar or atomic, because a set compares whole items. Objects are granular by default
/// and must be declared `atomic`; arrays are atomic by default.
fn item_of_set(items: &Field<'_>) {
    let list_type = &items["x-kubernetes-list-type"];
    let key = match text(&items["type"]) {
        "array" if !list_type.is_null() && list_type != "atomic" => "x-kubernetes-list-type",
        "object" if items["x-kubernetes-map-type"] != "atomic" => "x-kubernetes-map-type",
        _ => return,
    };
    items.at(key).invalid("must be atomic for the items of a set");
}

/// Checks `x-kubernetes-list-map-keys`: distinct scalar properties of the items, which are objects. A map list needs at
/// least one.
fn map_keys(schema: &Field<'_>) {
    let (list_type, items) = (schema.at("x-kubernetes-list-type"), schema.at("items"));
    let keys = schema.at("x-kubernetes-list-map-keys");
    if !keys.is_empty() {
        must_be(&list_type, "map", "x-kubernetes-list-map-keys");
    }
    if *list_type != "map" {
        return;
    }
    keys.required_with_if(keys.is_empty(), "must not be empty if x-kubernetes-list-type is map");
    items.required_with_if(items.is_null(), "must have a schema if x-kubernetes-list-type is map");
    if !items.is_object() {
        return;
    }
    let (item_type, fields) = (items.at("type"), items.at("properties"));
    if *item_type != "object" {
        return item_type.invalid("must be object if parent array's x-kubernetes-list-type is map");
    }
    let mut seen = BTreeSet::new();
    for (_, key) in entries(&keys) {
        let field = fields.at_key(text(key));
        let is_repeated = !seen.insert(text(key));
        keys.with(key).invalid_if(field.is_null() || is_repeated, "must be a property of the items, named once");
        let is_composite = ["array", "object"].contains(&text(&field["type"]));
        field.at("type").invalid_if(is_composite, "must be a scalar type for a key of a list of type map");
    }
}

/// Checks that items of sets and maps are not nullable and that keys of map lists are required or have a default.
/// Otherwise two items without a key could not be distinguished. A missing property was reported by `map_keys`.
fn keys_are_there(schema: &Field<'_>) {
    let (list_type, items) = (text(&schema["x-kubernetes-list-type"]), schema.at("items"));
    if !items.is_object() || !["set", "map"].contains(&list_type) {
        return;
    }
    let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
    items.at("nullable").forbidden_if(items["nullable"] == true, detail);
    let required: BTreeSet<&str> = entries(&items["required"]).map(|(_, name)| text(name)).collect();
    for (_, name) in entries(&schema["x-kubernetes-list-map-keys"]).filter(|_| list_type == "map") {
        let field = items.at("properties").at_key(text(name));
        if field.is_null() {
            continue;
        }
        let lacks_default = !required.contains(text(name)) && field["default"].is_null();
        field.at("default").required_with_if(lacks_default, "a key of a list needs a default or has to be required");
        field.at("nullable").forbidden_if(field["nullable"] == true, "a key of a list must not be nullable");
    }
}
