//! Tests apply and update against the responses of kube-apiserver 1.37.

mod custom;

use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-11-21T07:00:00Z";
const LATER: &str = "2026-11-21T08:00:00Z";

fn request<'a>(object: &'a Value, manager: &'a str) -> Request<'a> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let schema = Schema::built_in(text("apiVersion"), text("kind"));
    Request {
        schema,
        manager,
        subresource: Subresource::Main,
        api_version: text("apiVersion"),
        versions: &ONE_FORM,
        now: NOW,
        has_status: true,
        resets: Resets::NOTHING,
        force: false,
    }
}

fn config_map(rest: &Value) -> Value {
    with(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}), rest)
}

fn pod(containers: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
}

fn with(object: &Value, rest: &Value) -> Value {
    let mut object = object.clone();
    json_patch::merge(&mut object, rest);
    object
}

fn apply_object(live: Option<&Value>, manager: &str, object: &Value) -> Value {
    apply(&request(object, manager), live, object).unwrap()
}

/// Returns the conflicts of an apply: managers and fields.
fn conflicts_of(request: &Request<'_>, live: &Value, object: &Value) -> Vec<(String, String)> {
    let Err(ApplyError::Conflicts(conflicts)) = apply(request, Some(live), object) else { panic!("no conflicts") };
    conflicts.into_iter().map(|Conflict { manager, field }| (manager.name, field)).collect()
}

fn update_object(live: Option<&Value>, manager: &str, mut object: Value) -> Value {
    let sent = object.clone();
    update(&request(&sent, manager), live, &mut object);
    object
}

/// Returns a live object after a change by one of its owners.
fn change_object(live: &Value, manager: &str, change: &Value) -> Value {
    update_object(Some(live), manager, with(live, change))
}

/// Returns `[manager, fields]` of each entry.
fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.map(|entry| json!([entry["manager"], entry["fieldsV1"]])).collect()
}

fn time_of<'v>(object: &'v Value, manager: &str) -> Option<&'v str> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| entry["manager"] == manager)?["time"].as_str()
}

#[test]
fn fields_of_both_objects_are_visited_in_order() {
    let (left, right) = (json!({"b": 1, "d": 1}), json!({"a": 1, "c": 1, "d": 1}));
    let names: Vec<&String> = typed::names(Some(&left), Some(&right)).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn conflicts_name_each_owner_of_a_field() {
    let live = apply_object(None, "m1", &config_map(&json!({"data": {"a": "1"}})));
    let live = apply_object(Some(&live), "m2", &config_map(&json!({"data": {"a": "1"}})));
    let other = config_map(&json!({"data": {"a": "2"}}));
    let [m1, m2] = ["m1", "m2"].map(|manager| (manager.to_owned(), ".data.a".to_owned()));
    assert_eq!(conflicts_of(&request(&other, "m3"), &live, &other), [m1, m2.clone()]);
    assert_eq!(conflicts_of(&request(&other, "m1"), &live, &other), [m2]);
}

#[test]
fn conflicts_with_long_paths_are_bounded() {
    let data = |value: &str| -> Value {
        let fields = (0..300).map(|n| (format!("{n:010000}"), value.into()));
        json!({ "data": fields.collect::<Map<String, Value>>() })
    };
    let live = apply_object(None, "m1", &config_map(&data("1")));
    let other = config_map(&data("2"));
    let conflicts = conflicts_of(&request(&other, "m2"), &live, &other);
    let size: usize = conflicts.iter().map(|(_, field)| field.len()).sum();
    assert!((CONFLICT_PATHS_SIZE_MAX..CONFLICT_PATHS_SIZE_MAX + 20_000).contains(&size), "{size}");
}

#[test]
fn empty_map_is_owned_without_its_entries() {
    let live = apply_object(None, "m2", &config_map(&json!({"data": {"a": "1"}})));
    let live = apply_object(Some(&live), "m1", &config_map(&json!({"data": {}})));
    assert_eq!(owners(&live), json!([["m1", {"f:data": {}}], ["m2", {"f:data": {"f:a": {}}}]]));
}

#[test]
fn manager_that_applies_no_field_has_no_entry() {
    let live = apply_object(None, "m1", &config_map(&json!({"data": {"a": "1"}})));
    assert_eq!(apply_object(Some(&live), "m2", &config_map(&json!({}))), live);
}

#[test]
fn first_value_of_another_type_is_rejected() {
    let check = |object: &Value, expected: &str| {
        let untyped = ApplyError::Untyped { role: "patch", reason: expected.to_owned() };
        assert_eq!(apply(&request(object, "m1"), None, object), Err(untyped));
    };
    check(&config_map(&json!({"data": {"a": 1}})), "data.a: must be a string, found 1");
    check(&config_map(&json!({"data": []})), "data: must be an object, found array");
    check(&config_map(&json!({"foo": {}})), "foo: field not declared in schema");
    let duplicates = json!({"metadata": {"finalizers": ["a.b/c", "a.b/c"]}});
    check(&config_map(&duplicates), "metadata.finalizers: duplicate entries for key [=\"a.b/c\"]");
    let twice = json!([{"name": "a"}, {"name": "a"}]);
    check(&pod(&twice), "spec.containers: duplicate entries for key [name=\"a\"]");
    check(&pod(&json!("x")), "spec.containers: must be a list, found \"x\"");
    let port = json!([{"name": "a", "ports": [{"containerPort": "q"}], "stdin": "x"}]);
    check(&pod(&port), "spec.containers[0].ports[0].containerPort: must be a number, found \"q\"");
}

#[test]
fn container_without_name_is_added_to_list() {
    let live = apply_object(None, "m1", &pod(&json!([{"name": "a", "image": "i"}])));
    let live = apply_object(Some(&live), "m2", &pod(&json!([{"image": "i"}])));
    assert_eq!(live["spec"]["containers"].as_array().unwrap().len(), 2);
}

#[test]
fn owner_references_are_keyed_by_uid() {
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"});
    let live = apply_object(None, "m1", &config_map(&json!({"metadata": {"ownerReferences": [reference]}})));
    assert_eq!(owners(&live), json!([["m1", {"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"1\"}": {}}}}]]));
}

#[test]
fn finalizers_of_all_managers_are_kept_in_order() {
    let set = |names: &[&str]| config_map(&json!({"metadata": {"finalizers": names}}));
    let live = apply_object(None, "m1", &set(&["x.io/a", "x.io/b"]));
    let live = apply_object(Some(&live), "m2", &set(&["x.io/c", "x.io/b"]));
    assert_eq!(live["metadata"]["finalizers"], json!(["x.io/a", "x.io/c", "x.io/b"]));
    let live = apply_object(Some(&live), "m1", &config_map(&json!({})));
    assert_eq!(live["metadata"]["finalizers"], json!(["x.io/c", "x.io/b"]));
}

#[test]
fn creating_a_deployment_does_not_own_its_structs() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "containers": [{"name": "a", "image": "i", "resources": {}}], "securityContext": {}, "dnsPolicy": "Default",
    }});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "generation": 1}, "status": {},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}},
    });
    let container = json!({".": {}, "f:image": {}, "f:name": {}, "f:resources": {}});
    let fields = json!({"f:spec": {
        "f:replicas": {}, "f:selector": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
        "f:template": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": container}, "f:dnsPolicy": {}, "f:securityContext": {}},
        },
    }});
    let live = update_object(None, "up", object.clone());
    assert_eq!(owners(&live), json!([["up", fields]]));
    let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "c"}}}});
    let expected = [".spec.replicas", ".spec.selector"].map(|field| ("up".to_owned(), field.to_owned()));
    assert_eq!(conflicts_of(&request(&applied, "m1"), &live, &applied), expected);
}

#[test]
fn update_without_change_keeps_managed_fields_time() {
    let live = update_object(None, "up", config_map(&json!({"data": {"a": "1"}})));
    let mut same = with(&live, &json!({"metadata": {"resourceVersion": "7"}}));
    update(&Request { now: LATER, ..request(&live, "up") }, Some(&live), &mut same);
    assert_eq!(same["metadata"]["managedFields"], live["metadata"]["managedFields"]);
    let mut other = with(&live, &json!({"data": {"b": "1"}}));
    update(&Request { now: LATER, ..request(&live, "up") }, Some(&live), &mut other);
    assert_eq!(time_of(&other, "up"), Some(LATER));
}

#[test]
fn empty_managed_fields_stop_tracking_until_apply() {
    let start = update_object(None, "up", config_map(&json!({"data": {"a": "1"}})));
    for reset in [json!([]), json!([{}])] {
        let live = change_object(&start, "p", &json!({"metadata": {"managedFields": reset}, "data": {"q": "1"}}));
        assert_eq!(owners(&live), json!([]));
        let live = change_object(&live, "p", &json!({"data": {"z": "9"}}));
        assert_eq!(owners(&live), json!([]));
        let live = apply_object(Some(&live), "m1", &config_map(&json!({"data": {"y": "1", "z": "9"}})));
        let before = json!({"f:data": {".": {}, "f:a": {}, "f:q": {}, "f:z": {}}});
        assert_eq!(owners(&live), json!([["m1", {"f:data": {"f:y": {}, "f:z": {}}}], ["before-first-apply", before]]));
    }
}

#[test]
fn entries_that_the_client_sends_are_kept() {
    let live = update_object(None, "up", config_map(&json!({"data": {"a": "1"}})));
    let entry = json!({"manager": "mine", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}});
    let sent = change_object(&live, "zz", &json!({"metadata": {"managedFields": [entry]}}));
    assert_eq!(sent["metadata"]["managedFields"], json!([entry]));
    let malformed = change_object(&live, "zz", &json!({"metadata": {"managedFields": [{"operation": "Look"}]}}));
    assert_eq!(malformed, live);
}

/// Admission webhooks can leave an entry without fields.
#[test]
fn entry_without_fields_survives_an_untyped_update() {
    let entry = json!({"manager": "mine", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"});
    let live = config_map(&json!({"metadata": {"managedFields": [entry]}}));
    let untyped = change_object(&live, "zz", &json!({"data": "x"}));
    assert_eq!(owners(&untyped), json!([["mine", {}]]));
}

#[test]
fn oldest_update_entries_are_merged() {
    let mut live = apply_object(None, "m2", &config_map(&json!({"data": {"a": "1"}})));
    for patch in 0..13 {
        live = change_object(&live, &format!("p{patch:02}"), &json!({"data": {format!("k{patch}"): "9"}}));
    }
    let owners = owners(&live);
    assert_eq!(owners.as_array().unwrap().len(), 11);
    assert_eq!(owners[1], json!(["ancient-changes", {"f:data": {"f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}}]));
    assert_eq!(owners[2], json!(["p04", {"f:data": {"f:k4": {}}}]));
}

#[test]
fn status_update_has_separate_manager_entry() {
    let live = apply_object(None, "m1", &pod(&json!([{"name": "a", "image": "i"}])));
    let conditions = json!([{"type": "Ready", "status": "True", "lastProbeTime": null}]);
    let mut new = with(&live, &json!({"status": {"conditions": conditions}, "metadata": {"managedFields": []}}));
    let status = Request { subresource: Subresource::Status, ..request(&live, "kubelet") };
    let old = with(&live, &json!({"status": {}}));
    update(&status, Some(&old), &mut new);
    let entry = &new["metadata"]["managedFields"][1];
    assert_eq!((&entry["manager"], &entry["subresource"]), (&json!("kubelet"), &json!("status")));
    let condition = json!({".": {}, "f:lastProbeTime": {}, "f:status": {}, "f:type": {}});
    let conditions = json!({".": {}, "k:{\"type\":\"Ready\"}": condition});
    assert_eq!(entry["fieldsV1"], json!({"f:status": {"f:conditions": conditions}}));

    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let status = Request { subresource: Subresource::Status, ..request(&object, "m3") };
    let field = ".status.conditions[type=\"Ready\"].status";
    assert_eq!(conflicts_of(&status, &new, &object), [("kubelet".to_owned(), field.to_owned())]);
}

#[test]
fn kubectl_takes_over_client_side_applied_fields() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let first = config_map(&json!({"metadata": {"annotations": {}}, "data": {"a": "1", "b": "2"}}));
    let rest = json!({"metadata": {"annotations": {annotation: first.to_string()}}, "data": {"a": "1", "b": "2"}});
    let live = update_object(None, "kubectl-client-side-apply", config_map(&rest));
    let live = apply_object(Some(&live), "kubectl", &config_map(&json!({"data": {"a": "7"}})));
    assert_eq!(live["data"], json!({"a": "7", "b": "2"}));
    let expected =
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"7\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}\n";
    assert_eq!(live["metadata"]["annotations"][annotation], expected);
    let before = json!({"f:data": {".": {}, "f:b": {}}, "f:metadata": {"f:annotations": {".": {}, format!("f:{annotation}"): {}}}});
    assert_eq!(owners(&live), json!([["kubectl", {"f:data": {"f:a": {}}}], ["kubectl-client-side-apply", before]]));
    let other = config_map(&json!({"data": {"a": "8"}}));
    let expected = [("kubectl".to_owned(), ".data.a".to_owned())];
    assert_eq!(conflicts_of(&request(&other, "other"), &live, &other), expected);
}

#[test]
fn objects_without_a_schema_are_owned_by_field() {
    let object =
        json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": {"b": 1}, "l": [1]}});
    let live = apply_object(None, "m1", &object);
    let fields = json!({"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}});
    assert_eq!(owners(&live), json!([["m1", fields]]));
}
