//! Lists, objects, alternatives and embedded objects.

use serde_json::json;

use super::check;

#[test]
fn limits_of_lists_follow_the_items() {
    check(
        &json!({"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 3}),
        &json!(["a"]),
        &[
            r#"FieldValueInvalid spec.f[0]: Invalid value: "a": spec.f[0] in body should be at least 2 chars long"#,
            "FieldValueInvalid spec.f: Invalid value: 1: spec.f in body should have at least 3 items",
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
        &json!(["a", "b"]),
        &["FieldValueTooMany spec.f: Too many: 2: must have at most 1 item"],
    );
    check(
        &json!({"type": "array", "items": {"type": "string"}, "maxItems": 2}),
        &json!(["a", "b", "c"]),
        &["FieldValueTooMany spec.f: Too many: 3: must have at most 2 items"],
    );
}

#[test]
fn limits_of_objects_precede_the_fields() {
    check(
        &json!({"type": "object", "minProperties": 2, "required": ["z"], "additionalProperties": {"type": "integer"}}),
        &json!({"a": "x"}),
        &[
            "FieldValueInvalid spec.f: Invalid value: 1: spec.f in body should have at least 2 properties",
            r#"FieldValueTypeInvalid spec.f.a: Invalid value: "string": spec.f.a in body must be of type integer: "string""#,
            "FieldValueRequired spec.f.z: Required value",
        ],
    );
    check(
        &json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}}),
        &json!({"a": 1, "b": 2}),
        &["FieldValueTooMany spec.f: Too many: 2: must have at most 1 item"],
    );
}

#[test]
fn required_fields_are_reported_where_they_miss() {
    check(
        &json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"]}}, "required": ["x", "y"]}),
        &json!({}),
        &["FieldValueRequired spec.f.x: Required value", "FieldValueRequired spec.f.y: Required value"],
    );
    check(
        &json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"]}}, "required": ["x", "y"]}),
        &json!({"y": {}}),
        &["FieldValueRequired spec.f.y.z: Required value", "FieldValueRequired spec.f.x: Required value"],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}),
        &json!([{}]),
        &["FieldValueRequired spec.f[0].x: Required value"],
    );
}

#[test]
fn any_of_reports_the_closest_alternative() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 3}}}]}),
        &json!({}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)"#,
            "FieldValueRequired spec.f.a: Required value",
        ],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 3}}}]}),
        &json!({"b": "x"}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)"#,
            r#"FieldValueInvalid spec.f.b: Invalid value: "x": spec.f.b in body should be at least 3 chars long"#,
        ],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 3}}}]}),
        &json!({"c": "x"}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)"#,
            "FieldValueRequired spec.f.a: Required value",
            r#"FieldValueTypeInvalid spec.f.c: Invalid value: "string": spec.f.c in body must be of type integer: "string""#,
        ],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"properties": {"a": {"pattern": "^x"}}}, {"properties": {"a": {"pattern": "^y"}, "c": {"minimum": 3}}}, {"required": ["b"]}]}),
        &json!({"a": "z", "c": 1}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)"#,
            r#"FieldValueInvalid spec.f.a: Invalid value: "z": spec.f.a in body should match '^y'"#,
            "FieldValueInvalid spec.f.c: Invalid value: 1: spec.f.c in body should be greater than or equal to 3",
        ],
    );
    check(
        &json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}),
        &json!("c"),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)"#,
            r#"FieldValueNotSupported spec.f: Unsupported value: "c": supported values: "a""#,
        ],
    );
    check(&json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}), &json!("b"), &[]);
}

#[test]
fn one_of_takes_one_alternative() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &json!({}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found none valid"#,
            "FieldValueRequired spec.f.a: Required value",
        ],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &json!({"a": "x", "b": "x"}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        &json!({"type": "integer", "oneOf": [{"minimum": 5}, {"multipleOf": 2}]}),
        &json!("x"),
        &[
            r#"FieldValueTypeInvalid spec.f: Invalid value: "string": spec.f in body must be of type integer: "string""#,
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
}

#[test]
fn all_of_reports_every_failure() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "allOf": [{"required": ["a"]}, {"required": ["b"]}, {"properties": {"a": {"minLength": 3}}}]}),
        &json!({}),
        &[
            "FieldValueRequired spec.f.a: Required value",
            "FieldValueRequired spec.f.b: Required value",
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate all the schemas (allOf)"#,
        ],
    );
    check(
        &json!({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]}),
        &json!("x"),
        &[
            r#"FieldValueInvalid spec.f: Invalid value: "x": spec.f in body should match '^a'"#,
            r#"FieldValueInvalid spec.f: Invalid value: "x": spec.f in body should match '^b'"#,
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must validate all the schemas (allOf). None validated"#,
        ],
    );
}

#[test]
fn not_refuses_what_validates() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "not": {"required": ["a"]}}),
        &json!({"a": "x"}),
        &[r#"FieldValueInvalid <nil>: Invalid value: "": "spec.f" must not validate the schema (not)"#],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "not": {"required": ["a"]}}),
        &json!({"b": "x"}),
        &[],
    );
}

#[test]
fn sets_report_a_duplicate_once() {
    check(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        &json!(["a", "b", "a", "a", "b"]),
        &[
            r#"FieldValueDuplicate spec.f[2]: Duplicate value: "a""#,
            r#"FieldValueDuplicate spec.f[4]: Duplicate value: "b""#,
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}),
        &json!(["x", "x"]),
        &[
            r#"FieldValueTypeInvalid spec.f[0]: Invalid value: "string": spec.f[0] in body must be of type integer: "string""#,
            r#"FieldValueTypeInvalid spec.f[1]: Invalid value: "string": spec.f[1] in body must be of type integer: "string""#,
            r#"FieldValueDuplicate spec.f[1]: Duplicate value: "x""#,
        ],
    );
    check(
        &json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "integer"}}}}),
        &json!([{"a": 1}, {"a": 2}, {"a": 1}]),
        &[r#"FieldValueDuplicate spec.f[2]: Duplicate value: {"a":1}"#],
    );
}

#[test]
fn maps_report_duplicate_keys() {
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!([{"k": "a", "l": 1}, {"k": "a", "l": 1}, {"k": "a", "l": 2}, {"k": "a", "l": 1}]),
        &[r#"FieldValueDuplicate spec.f[1]: Duplicate value: {"k":"a","l":1}"#],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!([{}, {}]),
        &[
            "FieldValueRequired spec.f[0].k: Required value",
            "FieldValueRequired spec.f[0].l: Required value",
            "FieldValueRequired spec.f[1].k: Required value",
            "FieldValueRequired spec.f[1].l: Required value",
            "FieldValueDuplicate spec.f[1]: Duplicate value: {}",
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!(["a", "a"]),
        &[
            r#"FieldValueTypeInvalid spec.f[0]: Invalid value: "string": spec.f[0] in body must be of type object: "string""#,
            r#"FieldValueTypeInvalid spec.f[1]: Invalid value: "string": spec.f[1] in body must be of type object: "string""#,
            r#"FieldValueInvalid spec.f[0]: Invalid value: "a": must be an object for an array of list-type map"#,
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!({}),
        &[r#"FieldValueTypeInvalid spec.f: Invalid value: "object": spec.f in body must be of type array: "object""#],
    );
}

#[test]
fn embedded_objects_need_version_and_kind() {
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({}),
        &["FieldValueRequired spec.f.apiVersion: Required value", "FieldValueRequired spec.f.kind: Required value"],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "v1", "kind": "X"}),
        &[],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "a/b/c", "kind": ""}),
        &[
            r#"FieldValueInvalid spec.f.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
            r#"FieldValueInvalid spec.f.kind: Invalid value: "": must not be empty"#,
        ],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "", "kind": "X"}),
        &[r#"FieldValueInvalid spec.f.apiVersion: Invalid value: "": must not be empty"#],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "v1", "kind": "a_b", "metadata": {"name": "UPPER_x", "labels": {"a b": "c"}}}),
        &[
            r#"FieldValueInvalid spec.f.kind: Invalid value: "a_b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.f.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}),
        &json!([{}]),
        &[
            "FieldValueRequired spec.f[0].apiVersion: Required value",
            "FieldValueRequired spec.f[0].kind: Required value",
        ],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "", "annotations": {"a b": "x"}, "labels": {"a": "b c"}, "finalizers": ["x y"], "namespace": "A b"}}),
        &[
            r#"FieldValueInvalid spec.f.metadata.namespace: Invalid value: "A b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.f.metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
            r#"FieldValueInvalid spec.f.metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
            r#"FieldValueInvalid spec.f.metadata.finalizers: Invalid value: "x y": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
        ],
    );
}
