//! Compares defaulted objects with objects of kube-apiserver. `answers.json` has each object as sent and as stored,
//! without the parts that the caller of `default_object` sets.
//!
//! A new default needs a case in `tests/conformance/cases/defaulting.yaml`, which compares the whole response. The
//! tests here call `default_object` alone, because a request cannot show that a second call changes nothing and that
//! malformed objects do not panic.
//!
//! `kctl-apiserver/data/answers.py` records `stored` of each entry again, and `cargo xtask kubernetes` runs it. A new
//! entry needs `apiVersion`, `kind` and `sent`; its name says what it checks.

use std::sync::LazyLock;

use super::*;

static CASES: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("answers.json")).unwrap());

/// Sets the defaults by the rules of the kind.
fn default_object(api_version: &str, kind: &str, object: &mut Value, stored: Option<&Value>) {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let found = crate::kinds::ALL.iter().find(|found| (found.group, found.kind) == (group, kind));
    super::default_object(
        Type { api_version, kind_name: kind, kind: found.unwrap_or(&&Kind::DEFAULT) },
        object,
        stored,
    );
}

#[test]
fn recorded_objects_get_the_defaults_of_kube_apiserver() {
    let cases = CASES.as_object().unwrap();
    assert!(cases.len() >= 81, "{} cases", cases.len());
    for (name, case) in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let (mut object, stored) = (case["sent"].clone(), &case["stored"]);
        if text("kind") == "Pod" {
            // The caller sets this phase for new Pods only: a status write without a phase removes the phase.
            object["status"]["phase"] = "Pending".into();
        }
        default_object(text("apiVersion"), text("kind"), &mut object, None);
        assert_eq!(&object, stored, "{name}");
        default_object(text("apiVersion"), text("kind"), &mut object, None);
        assert_eq!(&object, stored, "{name}: the second time changes nothing");
    }
}

#[test]
fn malformed_objects_cause_no_panic() {
    let kinds = CASES.as_object().unwrap().values();
    for case in kinds {
        let (api_version, kind) = (case["apiVersion"].as_str().unwrap(), case["kind"].as_str().unwrap());
        for object in [json!(null), json!([]), json!("x"), json!({"spec": 5, "metadata": {"name": 5, "labels": "x"}})] {
            default_object(api_version, kind, &mut object.clone(), None);
        }
        let fields = case["stored"].as_object().unwrap().keys();
        for wrong in [json!(1), json!("x"), json!([1, "x", null, {}, []]), json!({"a": 1})] {
            let mut object: Value = fields.clone().map(|name| (name.clone(), wrong.clone())).collect();
            default_object(api_version, kind, &mut object, None);
            let spec = case["stored"]["spec"].as_object().into_iter().flatten();
            let spec: Value = spec.map(|(name, _)| (name.clone(), wrong.clone())).collect();
            default_object(api_version, kind, &mut json!({ "spec": spec }), None);
        }
    }
}

#[test]
fn other_kinds_get_no_defaults() {
    let mut object = json!({"spec": {"a": null, "l": []}});
    default_object("example.com/v1", "Pod", &mut object, None);
    assert_eq!(object, json!({"spec": {"a": null, "l": []}}));
}

#[test]
fn namespace_gets_no_default_finalizers() {
    let mut object = json!({"metadata": {"name": "x"}, "spec": {}});
    default_object("v1", "Namespace", &mut object, None);
    assert_eq!(object["spec"], json!({}));
}

#[test]
fn defaulting_with_stored_object_equals_full_defaulting() {
    let pods = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a" }] } });
    for (api_version, kind, object, change) in [
        ("v1", "Pod", json!({ "spec": { "containers": [{ "name": "a", "image": "i" }] } }), "/spec/containers/0/image"),
        ("v1", "Pod", json!({ "spec": { "containers": [{ "name": "a", "image": "i" }] } }), "/metadata/labels"),
        ("v1", "Namespace", json!({}), "/metadata/labels"),
        ("v1", "ReplicationController", json!({ "spec": { "template": pods } }), "/metadata/labels"),
        ("apps/v1", "DaemonSet", json!({ "spec": { "template": pods } }), "/metadata/annotations"),
        ("apps/v1", "Deployment", json!({ "spec": { "template": pods } }), "/spec/replicas"),
        ("v1", "Service", json!({ "spec": { "ports": [{ "port": 1 }, { "port": 2 }] } }), "/spec/ports/1/targetPort"),
    ] {
        let mut stored = object;
        stored["metadata"] = json!({ "name": "x", "labels": { "c": "" }, "annotations": { "c": "d" } });
        default_object(api_version, kind, &mut stored, None);
        let mut changed = stored.clone();
        *changed.pointer_mut(change).unwrap() = Value::Null;
        let mut alone = changed.clone();
        default_object(api_version, kind, &mut changed, Some(&stored));
        default_object(api_version, kind, &mut alone, None);
        assert_eq!(changed, alone, "{kind} {change}");
    }
}

/// kube-apiserver 1.37.2 accepts these fields and drops them.
#[test]
fn fields_of_features_that_are_off_go() {
    let mut pod = json!({
        "spec": {
            "schedulingGroup": { "podGroupName": "g" },
            "containers": [
                { "name": "a", "lifecycle": { "stopSignal": "SIGTERM" } },
                { "name": "b", "lifecycle": { "stopSignal": "no", "preStop": { "sleep": { "seconds": 1 } } } },
            ],
            "volumes": [{ "name": "v", "emptyDir": { "medium": "Memory", "mode": 511 } }],
        },
    });
    default_object("v1", "Pod", &mut pod, None);
    let spec = &pod["spec"];
    assert!(spec.get("schedulingGroup").is_none());
    assert!(spec["containers"][0].get("lifecycle").is_none());
    assert_eq!(spec["containers"][1]["lifecycle"], json!({ "preStop": { "sleep": { "seconds": 1 } } }));
    assert_eq!(spec["volumes"][0]["emptyDir"], json!({ "medium": "Memory" }));
}

#[test]
fn times_are_stored_in_utc_at_type_precision() {
    let mut node = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoExecute", "timeAdded": "2020-01-01T01:00:00.5+01:00" }] } });
    default_object("v1", "Node", &mut node, None);
    assert_eq!(node["spec"]["taints"][0]["timeAdded"], "2020-01-01T00:00:00Z");
    let mut lease = json!({ "spec": { "renewTime": "2020-01-01T01:00:00.000001+01:00", "acquireTime": "soon" } });
    default_object("coordination.k8s.io/v1", "Lease", &mut lease, None);
    assert_eq!(lease["spec"], json!({ "renewTime": "2020-01-01T00:00:00.000001Z", "acquireTime": "soon" }));
}
