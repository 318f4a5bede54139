//! Lists, objects, alternatives and embedded objects.

use serde_json::json;

use super::check;

#[test]
fn limits_of_lists_follow_the_items() {
    check(
        &json!({"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 3}),
        &json!(["a"]),
        &["Invalid spec.f[0]", "Invalid spec.f"],
    );
    check(
        &json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
        &json!(["a", "b"]),
        &["TooMany spec.f"],
    );
    check(
        &json!({"type": "array", "items": {"type": "string"}, "maxItems": 2}),
        &json!(["a", "b", "c"]),
        &["TooMany spec.f"],
    );
}

#[test]
fn limits_of_objects_precede_the_fields() {
    check(
        &json!({"type": "object", "minProperties": 2, "required": ["z"], "additionalProperties": {"type": "integer"}}),
        &json!({"a": "x"}),
        &["Invalid spec.f", "TypeInvalid spec.f.a", "Required spec.f.z"],
    );
    check(
        &json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}}),
        &json!({"a": 1, "b": 2}),
        &["TooMany spec.f"],
    );
}

#[test]
fn required_fields_are_reported_where_they_miss() {
    check(
        &json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"]}}, "required": ["x", "y"]}),
        &json!({}),
        &["Required spec.f.x", "Required spec.f.y"],
    );
    check(
        &json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"]}}, "required": ["x", "y"]}),
        &json!({"y": {}}),
        &["Required spec.f.y.z", "Required spec.f.x"],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}),
        &json!([{}]),
        &["Required spec.f[0].x"],
    );
}

#[test]
fn any_of_reports_the_closest_alternative() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 3}}}]}),
        &json!({}),
        &["Invalid <nil>", "Required spec.f.a"],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 3}}}]}),
        &json!({"b": "x"}),
        &["Invalid <nil>", "Invalid spec.f.b"],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 3}}}]}),
        &json!({"c": "x"}),
        &["Invalid <nil>", "Required spec.f.a", "TypeInvalid spec.f.c"],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "anyOf": [{"properties": {"a": {"pattern": "^x"}}}, {"properties": {"a": {"pattern": "^y"}, "c": {"minimum": 3}}}, {"required": ["b"]}]}),
        &json!({"a": "z", "c": 1}),
        &["Invalid <nil>", "Invalid spec.f.a", "Invalid spec.f.c"],
    );
    check(
        &json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}),
        &json!("c"),
        &["Invalid <nil>", "NotSupported spec.f"],
    );
    check(&json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}), &json!("b"), &[]);
}

#[test]
fn one_of_takes_one_alternative() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &json!({}),
        &["Invalid <nil>", "Required spec.f.a"],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &json!({"a": "x", "b": "x"}),
        &["Invalid <nil>"],
    );
    check(
        &json!({"type": "integer", "oneOf": [{"minimum": 5}, {"multipleOf": 2}]}),
        &json!("x"),
        &["TypeInvalid spec.f", "Invalid <nil>"],
    );
}

#[test]
fn all_of_reports_every_failure() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "allOf": [{"required": ["a"]}, {"required": ["b"]}, {"properties": {"a": {"minLength": 3}}}]}),
        &json!({}),
        &["Required spec.f.a", "Required spec.f.b", "Invalid <nil>"],
    );
    check(
        &json!({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]}),
        &json!("x"),
        &["Invalid spec.f", "Invalid <nil>"],
    );
}

#[test]
fn not_refuses_what_validates() {
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}}, "not": {"required": ["a"]}}),
        &json!({"a": "x"}),
        &["Invalid <nil>"],
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
        &["Duplicate spec.f[2]", "Duplicate spec.f[4]"],
    );
    check(
        &json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}),
        &json!(["x", "x"]),
        &["TypeInvalid spec.f[0]", "TypeInvalid spec.f[1]", "Duplicate spec.f[1]"],
    );
    check(
        &json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "integer"}}}}),
        &json!([{"a": 1}, {"a": 2}, {"a": 1}]),
        &["Duplicate spec.f[2]"],
    );
}

#[test]
fn maps_report_duplicate_keys() {
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!([{"k": "a", "l": 1}, {"k": "a", "l": 1}, {"k": "a", "l": 2}, {"k": "a", "l": 1}]),
        &["Duplicate spec.f[1]"],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!([{}, {}]),
        &[
            "Required spec.f[0].k",
            "Required spec.f[0].l",
            "Required spec.f[1].k",
            "Required spec.f[1].l",
            "Duplicate spec.f[1]",
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!(["a", "a"]),
        &["TypeInvalid spec.f[0]", "TypeInvalid spec.f[1]", "Invalid spec.f[0]"],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "integer"}}, "required": ["k", "l"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
        &json!({}),
        &["TypeInvalid spec.f"],
    );
}

#[test]
fn embedded_objects_need_version_and_kind() {
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({}),
        &["Required spec.f.apiVersion", "Required spec.f.kind"],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "v1", "kind": "X"}),
        &[],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "a/b/c", "kind": ""}),
        &["Invalid spec.f.apiVersion", "Invalid spec.f.kind"],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "", "kind": "X"}),
        &["Invalid spec.f.apiVersion"],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "v1", "kind": "a_b", "metadata": {"name": "UPPER_x", "labels": {"a b": "c"}}}),
        &["Invalid spec.f.kind", "Invalid spec.f.metadata.labels"],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}),
        &json!([{}]),
        &["Required spec.f[0].apiVersion", "Required spec.f[0].kind"],
    );
    check(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "", "annotations": {"a b": "x"}, "labels": {"a": "b c"}, "finalizers": ["x y"], "namespace": "A b"}}),
        &[
            "Invalid spec.f.metadata.namespace",
            "Invalid spec.f.metadata.labels",
            "Invalid spec.f.metadata.annotations",
            "Invalid spec.f.metadata.finalizers",
        ],
    );
}
