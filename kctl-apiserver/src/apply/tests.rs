//! The answers are those of kube-apiserver 1.36.

use serde_json::{Value, json};

use super::*;

fn request<'a>(manager: &str, kind: &str) -> Request<'a> {
    Request {
        schema: Schema::built_in("v1", kind),
        manager: manager.into(),
        subresource: "",
        api_version: "v1".into(),
        now: "2026-01-01T00:00:00Z".into(),
        force: false,
    }
}

fn config(data: &Value, meta: &Value) -> Value {
    let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ssa" } });
    if !data.is_null() {
        object["data"] = data.clone();
    }
    object["metadata"].as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
    object
}

fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.into_iter().map(|entry| json!({ entry["manager"].as_str().unwrap(): entry["fieldsV1"] })).collect()
}

#[test]
fn fields_that_are_no_longer_applied_go() {
    let one = request("one", "ConfigMap");
    let first = config(&json!({ "a": "1", "b": "2" }), &json!({ "labels": { "l": "1" }, "finalizers": ["x.y/z"] }));
    let live = apply(&one, None, &first).unwrap();
    let expected = json!({
        "f:data": { "f:a": {}, "f:b": {} },
        "f:metadata": { "f:finalizers": { "v:\"x.y/z\"": {} }, "f:labels": { "f:l": {} } },
    });
    assert_eq!(owners(&live), json!([{ "one": expected }]));
    let live = apply(&one, Some(&live), &config(&json!({ "b": "2" }), &json!({}))).unwrap();
    assert_eq!(live["data"], json!({ "b": "2" }));
    assert_eq!((&live["metadata"]["labels"], &live["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
}

#[test]
fn shared_fields_stay_until_the_last_owner_leaves() {
    let (one, two) = (request("one", "ConfigMap"), request("two", "ConfigMap"));
    let live = apply(&one, None, &config(&json!({ "a": "1", "b": "2" }), &json!({}))).unwrap();
    let live = apply(&two, Some(&live), &config(&json!({ "a": "1", "c": "3" }), &json!({}))).unwrap();
    let live = apply(&one, Some(&live), &config(&json!({ "b": "2" }), &json!({}))).unwrap();
    assert_eq!(live["data"], json!({ "a": "1", "b": "2", "c": "3" }));
    let live = apply(&two, Some(&live), &config(&json!({ "c": "3" }), &json!({}))).unwrap();
    assert_eq!(live["data"], json!({ "b": "2", "c": "3" }));
}

#[test]
fn conflicts_are_named_and_force_takes_over() {
    let (one, mut two) = (request("one", "ConfigMap"), request("two", "ConfigMap"));
    let live = apply(&one, None, &config(&json!({ "a": "1", "b": "2" }), &json!({}))).unwrap();
    let ApplyError::Conflicts(conflicts) =
        apply(&two, Some(&live), &config(&json!({ "a": "9", "b": "8" }), &json!({}))).unwrap_err()
    else {
        panic!("conflicts")
    };
    assert_eq!(
        conflict_message(&conflicts),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b"
    );
    two.force = true;
    let live = apply(&two, Some(&live), &config(&json!({ "a": "9" }), &json!({}))).unwrap();
    assert_eq!(owners(&live), json!([{ "one": { "f:data": { "f:b": {} } } }, { "two": { "f:data": { "f:a": {} } } }]));
}

#[test]
fn updates_take_over_what_they_change() {
    let one = request("one", "ConfigMap");
    let live = apply(&one, None, &config(&json!({ "a": "1", "b": "2" }), &json!({}))).unwrap();
    let mut new = live.clone();
    new["data"] = json!({ "a": "1", "b": "5", "d": "6" });
    update(&request("up", "ConfigMap"), Some(&live), &mut new);
    assert_eq!(
        owners(&new),
        json!([{ "one": { "f:data": { "f:a": {} } } }, { "up": { "f:data": { "f:b": {}, "f:d": {} } } }])
    );
    let ApplyError::Conflicts(conflicts) =
        apply(&one, Some(&new), &config(&json!({ "a": "1", "b": "7" }), &json!({}))).unwrap_err()
    else {
        panic!("conflicts")
    };
    assert_eq!(conflict_message(&conflicts), "Apply failed with 1 conflict: conflict with \"up\" using v1: .data.b");
}

#[test]
fn creation_owns_parts_that_are_not_always_there() {
    let mut config = config(&json!({ "a": "b" }), &json!({ "finalizers": ["a.b/c"] }));
    update(&request("up", "ConfigMap"), None, &mut config);
    let expected = json!({
        "f:data": { ".": {}, "f:a": {} },
        "f:metadata": { "f:finalizers": { ".": {}, "v:\"a.b/c\"": {} } },
    });
    assert_eq!(owners(&config), json!([{ "up": expected }]));
    let mut pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "a", "image": "b" }] } });
    update(&request("up", "Pod"), None, &mut pod);
    let container = json!({ ".": {}, "f:image": {}, "f:name": {} });
    let expected = json!({ "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": container } } });
    assert_eq!(owners(&pod), json!([{ "up": expected }]));
}

#[test]
fn keys_that_are_left_out_have_their_defaults() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "a", "ports": [{ "containerPort": 80 }] }] },
    });
    let live = apply(&request("one", "Pod"), None, &pod).unwrap();
    let port = json!({ "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } });
    let container = json!({ ".": {}, "f:name": {}, "f:ports": port });
    let expected = json!({ "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": container } } });
    assert_eq!(owners(&live), json!([{ "one": expected }]));
}

#[test]
fn items_with_the_same_keys_are_refused() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "ssap" },
        "spec": { "containers": [{ "name": "a" }, { "name": "a" }] },
    });
    let ApplyError::Broken(text) = apply(&request("one", "Pod"), None, &pod).unwrap_err() else { panic!("broken") };
    assert_eq!(
        text,
        "failed to create typed patch object (/ssap; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name=\"a\"]"
    );
}

#[test]
fn forgotten_owners_stay_forgotten_until_somebody_applies() {
    let one = request("one", "ConfigMap");
    let live = apply(&one, None, &config(&json!({ "a": "1" }), &json!({}))).unwrap();
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    update(&one, Some(&live), &mut reset);
    assert_eq!(reset["metadata"]["managedFields"], Value::Null);
    let mut changed = reset.clone();
    changed["data"]["b"] = "2".into();
    update(&one, Some(&reset), &mut changed);
    assert_eq!(changed["metadata"]["managedFields"], Value::Null);
    let applied = apply(&one, Some(&changed), &config(&json!({ "a": "1" }), &json!({}))).unwrap();
    assert_eq!(
        owners(&applied),
        json!([
            { "one": { "f:data": { "f:a": {} } } },
            { "before-first-apply": { "f:data": { "f:a": {}, "f:b": {} } } },
        ])
    );
}
