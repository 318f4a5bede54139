//! Schemas of CRDs.

use serde_json::json;

use super::{check_field, check_schema};

#[test]
fn schema_root_is_object_without_metadata_constraints() {
    check_schema(&json!({"type": "string"}), &["Invalid ~.type"]);
    check_schema(&json!({"properties": {}}), &["Required ~.type"]);
    check_schema(&json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    check_schema(
        &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
        &["Forbidden ~.properties[metadata]"],
    );
    check_schema(
        &json!({"type": "object", "properties": {"metadata": {"type": "object", "minProperties": 1}}}),
        &["Forbidden ~.properties[metadata]"],
    );
    check_schema(
        &json!({"type": "object", "properties": {"metadata": {"type": "string"}, "apiVersion": {"type": "integer"}, "kind": {"type": "object"}}}),
        &[
            "Invalid ~.properties[apiVersion].type",
            "Invalid ~.properties[kind].type",
            "Invalid ~.properties[metadata].type",
        ],
    );
    check_schema(&json!({"type": "object", "nullable": true}), &["Forbidden ~.nullable"]);
    check_schema(
        &json!({"type": "object", "default": {}}),
        &["Required ~.default.apiVersion", "Required ~.default.kind"],
    );
    check_schema(
        &json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-preserve-unknown-fields": true}}}),
        &[],
    );
    check_schema(
        &json!({"type": "object", "properties": {"a": {}, "b": {"type": "foo"}, "c": {"type": "array"}}}),
        &["Required ~.properties[a].type", "Required ~.properties[c].items", "NotSupported ~.properties[b].type"],
    );
    check_schema(
        &json!({"type": "object", "anyOf": [{"required": ["spec"]}], "properties": {"spec": {"type": "object"}}}),
        &[],
    );
}

#[test]
fn some_keywords_are_not_supported() {
    check_field(&json!({"$ref": "#/x"}), &["Forbidden ~.$ref"]);
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &["Forbidden ~.uniqueItems"],
    );
    check_field(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &["Forbidden ~.additionalProperties"],
    );
    check_field(&json!({"type": "object", "additionalProperties": false}), &[]);
    check_field(&json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}), &[]);
    check_field(&json!({"type": "object", "definitions": {"a": {"type": "string"}}}), &["Forbidden ~.definitions"]);
    check_field(
        &json!({"type": "object", "patternProperties": {"a": {"type": "string"}}}),
        &["Forbidden ~.patternProperties"],
    );
    check_field(&json!({"type": "object", "dependencies": {"a": ["b"]}}), &["Forbidden ~.dependencies"]);
    check_field(&json!({"type": "object", "id": "x"}), &["Forbidden ~.id"]);
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "additionalItems": true}),
        &["Forbidden ~.additionalItems"],
    );
}

#[test]
fn every_field_has_a_type() {
    check_field(&json!({}), &["Required ~.type"]);
    check_field(&json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    check_field(&json!({"type": "foo"}), &["NotSupported ~.type"]);
    check_field(&json!({"type": "null"}), &["NotSupported ~.type", "Forbidden ~.type"]);
    check_field(&json!({"type": "array"}), &["Required ~.items"]);
    check_field(&json!({"type": "array", "items": [{"type": "string"}]}), &["Forbidden ~.items"]);
    check_field(&json!({"type": "object", "additionalProperties": {}}), &["Required ~.additionalProperties.type"]);
    check_field(&json!({"type": "array", "items": {}}), &["Required ~.items.type"]);
}

#[test]
fn defaults_are_valid_and_known() {
    check_field(&json!({"type": "string", "default": 1}), &["TypeInvalid ~.default"]);
    check_field(&json!({"type": "string", "default": "c", "enum": ["a"]}), &["NotSupported ~.default"]);
    check_field(
        &json!({"type": "object", "default": {"x": 1}, "properties": {"a": {"type": "string"}}}),
        &["Invalid ~.default"],
    );
    check_field(&json!({"type": "string", "default": null}), &[]);
    check_field(&json!({"type": "string", "nullable": true, "default": null}), &[]);
    check_field(
        &json!({"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "string"}}}),
        &["Required ~.default.a"],
    );
    check_field(
        &json!({"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
        &["Required ~.default.a"],
    );
}

#[test]
fn map_keys_are_required_fields() {
    check_field(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map"}),
        &["Required ~.x-kubernetes-list-map-keys"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &["Required ~.items.properties[k].default"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["z", "z"]}),
        &["Invalid ~.x-kubernetes-list-map-keys"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "object"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &["Invalid ~.items.properties[k].type"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &["Invalid ~.items.type"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "nullable": true, "required": ["k"], "properties": {"k": {"type": "string", "nullable": true}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &["Forbidden ~.items.nullable", "Forbidden ~.items.properties[k].nullable"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["k"]}),
        &["Required ~.x-kubernetes-list-type"],
    );
}

#[test]
fn list_and_map_types_require_matching_schemas() {
    check_field(
        &json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        &["Invalid ~.items.x-kubernetes-map-type"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "x-kubernetes-list-type": "set"}),
        &[],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string", "nullable": true}, "x-kubernetes-list-type": "set"}),
        &["Forbidden ~.items.nullable"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "foo"}),
        &["NotSupported ~.x-kubernetes-list-type"],
    );
    check_field(&json!({"type": "object", "x-kubernetes-list-type": "set"}), &["Invalid ~.type"]);
    check_field(&json!({"type": "object", "x-kubernetes-map-type": "foo"}), &["NotSupported ~.x-kubernetes-map-type"]);
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-map-type": "atomic"}),
        &["Invalid ~.type"],
    );
}

#[test]
fn extensions_stand_where_they_have_a_meaning() {
    check_field(&json!({"type": "object", "x-kubernetes-embedded-resource": true}), &["Required ~.properties"]);
    check_field(
        &json!({"type": "string", "x-kubernetes-embedded-resource": true}),
        &["Required ~.properties", "Invalid ~.type"],
    );
    check_field(&json!({"type": "string", "x-kubernetes-int-or-string": true}), &[]);
    check_field(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
        &["Invalid ~.x-kubernetes-preserve-unknown-fields"],
    );
    check_field(&json!({"type": "string", "enum": [1]}), &[]);
    check_field(&json!({"type": "string", "enum": ["a", "a"]}), &[]);
    check_field(&json!({"type": "string", "minLength": -1, "maxLength": -2}), &[]);
    check_field(&json!({"type": "integer", "minimum": 5, "maximum": 1}), &[]);
    check_field(&json!({"type": "integer", "multipleOf": 0}), &[]);
    check_field(&json!({"type": "string", "format": "zzz"}), &[]);
    check_field(&json!({"type": "object", "required": ["a", "a"]}), &[]);
    check_field(&json!({"type": "string", "$schema": "x"}), &["Invalid spec.validation.openAPIV3Schema"]);
}

#[test]
fn alternatives_hold_only_validation() {
    check_field(&json!({"type": "string", "anyOf": [{"type": "string"}]}), &["Forbidden ~.anyOf[0].type"]);
    check_field(
        &json!({"type": "string", "anyOf": [{"default": "x", "description": "d", "nullable": true, "title": "x"}]}),
        &[
            "Forbidden ~.anyOf[0].default",
            "Forbidden ~.anyOf[0].description",
            "Forbidden ~.anyOf[0].nullable",
            "Forbidden ~.anyOf[0].title",
        ],
    );
    check_field(&json!({"type": "object", "anyOf": [{"properties": {"a": {"pattern": "x"}}}]}), &[]);
    check_field(&json!({"type": "array", "items": {"type": "string"}, "not": {"items": {"minLength": 1}}}), &[]);
    check_field(&json!({"type": "object", "not": {"items": {"minLength": 1}}}), &[]);
    check_field(
        &json!({"type": "object", "additionalProperties": {"type": "string"}, "anyOf": [{"additionalProperties": {"pattern": "x"}}]}),
        &["Forbidden ~.anyOf[0].additionalProperties"],
    );
}
