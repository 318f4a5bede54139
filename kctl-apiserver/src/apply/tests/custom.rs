//! Tests apply and update of custom resources, whose schemas define how lists are merged.

use super::*;

fn schema() -> Value {
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "zone": {"type": "string", "default": "z"}, "n": {"type": "integer"}}});
    let strings = json!({"type": "string"});
    let spec = json!({
        "size": {"type": "integer"},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": strings},
        "plain": {"type": "array", "items": strings},
        "parts": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "zone"], "items": part},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": strings},
    });
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}})
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "ssa.example.com/v1", "kind": "Widget", "metadata": {"name": "w1"}, "spec": spec})
}

fn apply_widget(live: Option<&Value>, manager: &str, spec: &Value) -> Result<Value, ApplyError> {
    let (schema, object) = (schema(), widget(spec));
    let request = Request { schema: Some(Schema::structural(&schema)), ..request(&object, manager) };
    apply(&request, live, &object)
}

fn first() -> Value {
    let spec = json!({
        "size": 1, "tags": ["a", "b"], "plain": ["x"], "whole": {"k": "v"},
        "parts": [{"name": "p", "zone": "z", "n": 1}, {"name": "q", "zone": "z", "n": 1}],
        "free": {"x": {"y": 1}, "l": [1]},
    });
    apply_widget(None, "m1", &spec).unwrap()
}

#[test]
fn custom_list_types_decide_ownership() {
    let part = json!({".": {}, "f:n": {}, "f:name": {}, "f:zone": {}});
    let fields = json!({"f:spec": {
        "f:free": {"f:l": {}, "f:x": {".": {}, "f:y": {}}},
        "f:parts": {"k:{\"name\":\"p\",\"zone\":\"z\"}": part, "k:{\"name\":\"q\",\"zone\":\"z\"}": part},
        "f:plain": {}, "f:size": {}, "f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}, "f:whole": {},
    }});
    assert_eq!(owners(&first()), json!([["m1", fields]]));
}

#[test]
fn items_merge_and_are_removed_by_owner() {
    let second = json!({"tags": ["c", "a"], "parts": [{"name": "r", "zone": "z", "n": 2}, {"name": "p", "zone": "z"}]});
    let live = apply_widget(Some(&first()), "m2", &second).unwrap();
    assert_eq!(live["spec"]["tags"], json!(["c", "a", "b"]));
    let names = |live: &Value| {
        live["spec"]["parts"].as_array().unwrap().iter().map(|part| part["name"].clone()).collect::<Value>()
    };
    assert_eq!(names(&live), json!(["r", "p", "q"]));

    let third = json!({"tags": ["b"], "parts": [{"name": "q", "zone": "z"}], "free": {"x": {}}});
    let live = apply_widget(Some(&live), "m1", &third).unwrap();
    let expected = json!({
        "free": {"x": null}, "tags": ["c", "a", "b"],
        "parts": [{"name": "r", "zone": "z", "n": 2}, {"name": "p", "zone": "z"}, {"name": "q", "zone": "z"}],
    });
    assert_eq!(live["spec"], expected);
    let part = json!({".": {}, "f:name": {}, "f:zone": {}});
    let fields = json!({"f:spec": {
        "f:free": {"f:x": {}}, "f:tags": {"v:\"b\"": {}}, "f:parts": {"k:{\"name\":\"q\",\"zone\":\"z\"}": part},
    }});
    assert_eq!(owners(&live)[0], json!(["m1", fields]));
}

#[test]
fn applied_custom_resource_is_checked_against_schema() {
    let check = |spec: &Value, expected: &str| {
        let untyped = ApplyError::Untyped { role: "patch", reason: expected.to_owned() };
        assert_eq!(apply_widget(None, "m1", spec), Err(untyped));
    };
    check(&json!({"tags": ["b", "b"]}), "spec.tags: duplicate entries for key [=\"b\"]");
    check(&json!({"size": "x"}), "spec.size: must be a number, found \"x\"");
    check(&json!({"nope": "x"}), "spec.nope: field not declared in schema");
    check(&json!({"tags": [null]}), "spec.tags: element 0: items of a set must be scalars");
}

#[test]
fn creator_of_custom_resource_owns_all_objects() {
    let (schema, mut object) = (schema(), widget(&json!({"size": 1, "free": {"x": 1}, "tags": ["a"]})));
    let sent = object.clone();
    update(&Request { schema: Some(Schema::structural(&schema)), ..request(&sent, "up") }, None, &mut object);
    let fields =
        json!({"f:spec": {".": {}, "f:free": {".": {}, "f:x": {}}, "f:size": {}, "f:tags": {".": {}, "v:\"a\"": {}}}});
    assert_eq!(owners(&object), json!([["up", fields]]));
}
