//! Schemas of definitions.

use serde_json::json;

use super::{check_field, check_schema};

#[test]
fn roots_of_schemas_are_objects_without_rules_for_metadata() {
    check_schema(
        &json!({"type": "string"}),
        &[r#"FieldValueInvalid ~.type: Invalid value: "string": must be object at the root"#],
    );
    check_schema(
        &json!({"properties": {}}),
        &["FieldValueRequired ~.type: Required value: must not be empty at the root"],
    );
    check_schema(&json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    check_schema(
        &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
        &[
            "FieldValueForbidden ~.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
    check_schema(
        &json!({"type": "object", "properties": {"metadata": {"type": "object", "minProperties": 1}}}),
        &[
            "FieldValueForbidden ~.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
    check_schema(
        &json!({"type": "object", "properties": {"metadata": {"type": "string"}, "apiVersion": {"type": "integer"}, "kind": {"type": "object"}}}),
        &[
            r#"FieldValueInvalid ~.properties[apiVersion].type: Invalid value: "integer": must be string"#,
            r#"FieldValueInvalid ~.properties[kind].type: Invalid value: "object": must be string"#,
            r#"FieldValueInvalid ~.properties[metadata].type: Invalid value: "string": must be object"#,
        ],
    );
    check_schema(
        &json!({"type": "object", "nullable": true}),
        &["FieldValueForbidden ~.nullable: Forbidden: nullable cannot be true at the root"],
    );
    check_schema(
        &json!({"type": "object", "default": {}}),
        &[
            "FieldValueRequired ~.default.apiVersion: Required value",
            "FieldValueRequired ~.default.kind: Required value",
        ],
    );
    check_schema(
        &json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-preserve-unknown-fields": true}}}),
        &[],
    );
    check_schema(
        &json!({"type": "object", "properties": {"a": {}, "b": {"type": "foo"}, "c": {"type": "array"}}}),
        &[
            "FieldValueRequired ~.properties[a].type: Required value: must not be empty for specified object fields",
            "FieldValueRequired ~.properties[c].items: Required value: must be specified",
            r#"FieldValueNotSupported ~.properties[b].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    );
    check_schema(
        &json!({"type": "object", "anyOf": [{"required": ["spec"]}], "properties": {"spec": {"type": "object"}}}),
        &[],
    );
}

#[test]
fn some_keywords_are_not_supported() {
    check_field(&json!({"$ref": "#/x"}), &["FieldValueForbidden ~.$ref: Forbidden: $ref is not supported"]);
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &[
            "FieldValueForbidden ~.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    check_field(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[
            "FieldValueForbidden ~.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    check_field(&json!({"type": "object", "additionalProperties": false}), &[]);
    check_field(&json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}), &[]);
    check_field(
        &json!({"type": "object", "definitions": {"a": {"type": "string"}}}),
        &["FieldValueForbidden ~.definitions: Forbidden: definitions is not supported"],
    );
    check_field(
        &json!({"type": "object", "patternProperties": {"a": {"type": "string"}}}),
        &["FieldValueForbidden ~.patternProperties: Forbidden: patternProperties is not supported"],
    );
    check_field(
        &json!({"type": "object", "dependencies": {"a": ["b"]}}),
        &["FieldValueForbidden ~.dependencies: Forbidden: dependencies is not supported"],
    );
    check_field(&json!({"type": "object", "id": "x"}), &["FieldValueForbidden ~.id: Forbidden: id is not supported"]);
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "additionalItems": true}),
        &["FieldValueForbidden ~.additionalItems: Forbidden: additionalItems is not supported"],
    );
}

#[test]
fn every_field_has_a_type() {
    check_field(
        &json!({}),
        &["FieldValueRequired ~.type: Required value: must not be empty for specified object fields"],
    );
    check_field(&json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    check_field(
        &json!({"type": "foo"}),
        &[
            r#"FieldValueNotSupported ~.type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    );
    check_field(
        &json!({"type": "null"}),
        &[
            r#"FieldValueNotSupported ~.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            "FieldValueForbidden ~.type: Forbidden: type cannot be set to null, use nullable as an alternative",
        ],
    );
    check_field(&json!({"type": "array"}), &["FieldValueRequired ~.items: Required value: must be specified"]);
    check_field(
        &json!({"type": "array", "items": [{"type": "string"}]}),
        &["FieldValueForbidden ~.items: Forbidden: items must be a schema object and not an array"],
    );
    check_field(
        &json!({"type": "object", "additionalProperties": {}}),
        &[
            "FieldValueRequired ~.additionalProperties.type: Required value: must not be empty for specified object fields",
        ],
    );
    check_field(
        &json!({"type": "array", "items": {}}),
        &["FieldValueRequired ~.items.type: Required value: must not be empty for specified array items"],
    );
}

#[test]
fn defaults_are_valid_and_known() {
    check_field(
        &json!({"type": "string", "default": 1}),
        &[r#"FieldValueTypeInvalid ~.default: Invalid value: "integer":  in body must be of type string: "integer""#],
    );
    check_field(
        &json!({"type": "string", "default": "c", "enum": ["a"]}),
        &[r#"FieldValueNotSupported ~.default: Unsupported value: "c": supported values: "a""#],
    );
    check_field(
        &json!({"type": "object", "default": {"x": 1}, "properties": {"a": {"type": "string"}}}),
        &[r#"FieldValueInvalid ~.default: Invalid value: {"x":1}: must not have unknown fields"#],
    );
    check_field(&json!({"type": "string", "default": null}), &[]);
    check_field(&json!({"type": "string", "nullable": true, "default": null}), &[]);
    check_field(
        &json!({"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "string"}}}),
        &["FieldValueRequired ~.default.a: Required value"],
    );
    check_field(
        &json!({"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
        &["FieldValueRequired ~.default.a: Required value"],
    );
}

#[test]
fn keys_of_maps_are_fields_that_are_always_there() {
    check_field(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map"}),
        &[
            "FieldValueRequired ~.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &[
            "FieldValueRequired ~.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["z", "z"]}),
        &[
            r#"FieldValueInvalid ~.x-kubernetes-list-map-keys: Invalid value: ["z","z"]: entries must all be names of item properties"#,
            r#"FieldValueInvalid ~.x-kubernetes-list-map-keys: Invalid value: ["z","z"]: entries must all be names of item properties"#,
            r#"FieldValueInvalid ~.x-kubernetes-list-map-keys: Invalid value: ["z","z"]: must not contain duplicate entries"#,
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "object"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &[
            r#"FieldValueInvalid ~.items.properties[k].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map"#,
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &[
            r#"FieldValueInvalid ~.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "object", "nullable": true, "required": ["k"], "properties": {"k": {"type": "string", "nullable": true}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        &[
            "FieldValueForbidden ~.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            "FieldValueForbidden ~.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["k"]}),
        &[
            "FieldValueRequired ~.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    );
}

#[test]
fn items_of_sets_and_maps_can_be_told_apart() {
    check_field(
        &json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        &[
            "FieldValueInvalid ~.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "x-kubernetes-list-type": "set"}),
        &[],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string", "nullable": true}, "x-kubernetes-list-type": "set"}),
        &["FieldValueForbidden ~.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "foo"}),
        &[
            r#"FieldValueNotSupported ~.x-kubernetes-list-type: Unsupported value: "foo": supported values: "atomic", "set", "map""#,
        ],
    );
    check_field(
        &json!({"type": "object", "x-kubernetes-list-type": "set"}),
        &[r#"FieldValueInvalid ~.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified"#],
    );
    check_field(
        &json!({"type": "object", "x-kubernetes-map-type": "foo"}),
        &[
            r#"FieldValueNotSupported ~.x-kubernetes-map-type: Unsupported value: "foo": supported values: "atomic", "granular""#,
        ],
    );
    check_field(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-map-type": "atomic"}),
        &[r#"FieldValueInvalid ~.type: Invalid value: "array": must be object if x-kubernetes-map-type is specified"#],
    );
}

#[test]
fn extensions_stand_where_they_have_a_meaning() {
    check_field(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        &[
            "FieldValueRequired ~.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    );
    check_field(
        &json!({"type": "string", "x-kubernetes-embedded-resource": true}),
        &[
            "FieldValueRequired ~.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            r#"FieldValueInvalid ~.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
        ],
    );
    check_field(&json!({"type": "string", "x-kubernetes-int-or-string": true}), &[]);
    check_field(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
        &["FieldValueInvalid ~.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    );
    check_field(&json!({"type": "string", "enum": [1]}), &[]);
    check_field(&json!({"type": "string", "enum": ["a", "a"]}), &[]);
    check_field(&json!({"type": "string", "minLength": -1, "maxLength": -2}), &[]);
    check_field(&json!({"type": "integer", "minimum": 5, "maximum": 1}), &[]);
    check_field(&json!({"type": "integer", "multipleOf": 0}), &[]);
    check_field(&json!({"type": "string", "format": "zzz"}), &[]);
    check_field(&json!({"type": "object", "required": ["a", "a"]}), &[]);
    check_field(
        &json!({"type": "string", "$schema": "x"}),
        &[
            r#"FieldValueInvalid spec.validation.openAPIV3Schema: Invalid value: "": OpenAPIV3Schema 'schema' is not supported"#,
        ],
    );
}

#[test]
fn alternatives_hold_only_validation() {
    check_field(
        &json!({"type": "string", "anyOf": [{"type": "string"}]}),
        &["FieldValueForbidden ~.anyOf[0].type: Forbidden: must be empty to be structural"],
    );
    check_field(
        &json!({"type": "string", "anyOf": [{"default": "x", "description": "d", "nullable": true, "title": "x"}]}),
        &[
            "FieldValueForbidden ~.anyOf[0].default: Forbidden: must be undefined to be structural",
            "FieldValueForbidden ~.anyOf[0].description: Forbidden: must be empty to be structural",
            "FieldValueForbidden ~.anyOf[0].nullable: Forbidden: must be false to be structural",
            "FieldValueForbidden ~.anyOf[0].title: Forbidden: must be empty to be structural",
        ],
    );
    check_field(&json!({"type": "object", "anyOf": [{"properties": {"a": {"pattern": "x"}}}]}), &[]);
    check_field(&json!({"type": "array", "items": {"type": "string"}, "not": {"items": {"minLength": 1}}}), &[]);
    check_field(&json!({"type": "object", "not": {"items": {"minLength": 1}}}), &[]);
    check_field(
        &json!({"type": "object", "additionalProperties": {"type": "string"}, "anyOf": [{"additionalProperties": {"pattern": "x"}}]}),
        &["FieldValueForbidden ~.anyOf[0].additionalProperties: Forbidden: must be undefined to be structural"],
    );
}
