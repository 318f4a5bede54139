//! Tests of the normal form of a state, and of the differences between two states.

use std::sync::Arc;

use serde_json::json;

use super::*;

#[test]
fn changed_field_is_one_that_no_server_writes() {
    let object = |version: u32, tier: &str, spec: Value| {
        let metadata = json!({ "generation": version, "resourceVersion": version, "labels": { "tier": tier } });
        json!({ "kind": "Site", "metadata": metadata, "spec": spec })
    };
    let long = "x".repeat(100);
    let cases = [
        (object(2, "low", json!({})), None),
        (object(2, "gold", json!({ "a": 1 })), Some(r#".metadata.labels.tier is "gold""#.to_owned())),
        (object(2, "low", json!({ "a": 1 })), Some(".spec.a is 1".into())),
        (object(2, "low", json!({ "a": long })), Some(format!(".spec.a is \"{}…", &long[..59]))),
    ];
    for (after, expected) in cases {
        assert_eq!(changed_field(&object(1, "low", json!({})), &after), expected);
    }
}

fn snapshot(pods: &[(&str, &str, &str)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (name, uid, time) in pods {
        let object = json!({
            "metadata": { "name": name, "generateName": "web-", "uid": uid, "resourceVersion": uid },
            "status": { "startTime": time, "podIP": uid, "message": format!("{name} runs") },
        });
        let id = Id {
            cluster: String::new(),
            group: String::new(),
            resource: "pods".into(),
            namespace: "default".into(),
            name: (*name).into(),
        };
        snapshot.objects.insert(id, Arc::new(object));
    }
    snapshot
}

#[test]
fn generated_names_uids_and_times_make_no_difference() {
    let one = snapshot(&[("web-a", "1", "2026-01-01T00:00:00Z"), ("web-b", "2", "2026-01-01T00:00:05Z")]);
    let other = snapshot(&[("web-x", "7", "2026-01-01T00:10:00Z"), ("web-a", "3", "2026-01-01T00:00:01Z")]);
    let (one, other) = (state(&one, &[], &TimeDependent::default()), state(&other, &[], &TimeDependent::default()));
    assert_eq!(difference(&one, &other), None);
}

#[test]
fn order_of_finalizers_makes_no_difference() {
    let state = |finalizers: [&str; 2]| {
        let (id, site) = object("sites", "a", "", "");
        let mut site = Value::clone(&site);
        site["metadata"]["finalizers"] = json!(finalizers);
        let mut snapshot = Snapshot::default();
        snapshot.objects.insert(id, Arc::new(site));
        state(&snapshot, &[], &TimeDependent::default())
    };
    assert_eq!(difference(&state(["a.b/disk", "a.b/name"]), &state(["a.b/name", "a.b/disk"])), None);
    assert_ne!(difference(&state(["a.b/disk", "a.b/name"]), &state(["a.b/disk", "a.b/disk"])), None);
}

#[test]
fn pointer_of_a_difference_leaves_it_out() {
    let state = |labels: &Value| {
        let object = json!({ "metadata": { "labels": labels }, "status": { "n": 1 } });
        vec![NormalizedObject { name: "sites default/a".into(), resource: "sites".into(), object }]
    };
    let (one, other) = (state(&json!({ "a.b/c~d": "1" })), state(&json!({ "a.b/c~d": "2" })));
    let pointer = field_to_ignore(&one, &other).unwrap();
    assert_eq!(pointer, "sites/metadata/labels/a.b~1c~0d");
    let [one, other] = [one, other].map(|mut state| {
        remove(&mut state[0].object, pointer_in(&pointer, "sites").unwrap());
        state
    });
    assert_eq!(one, other);
    assert_eq!(field_to_ignore(&one, &other), None);
    assert_eq!(field_to_ignore(&one, &[]), None, "a missing object has no field");
}

/// Returns an object with this `metadata.generateName`; without one if it is empty.
fn object(resource: &str, name: &str, base: &str, text: &str) -> (Id, Arc<Value>) {
    let mut object = json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-of-{name}") },
        "status": { "message": text },
    });
    if !base.is_empty() {
        object["metadata"]["generateName"] = base.into();
    }
    let [resource, namespace, name] = [resource, "default", name].map(str::to_owned);
    let id = Id { cluster: String::new(), group: String::new(), resource, namespace, name };
    (id, Arc::new(object))
}

fn state_of(objects: &[(&str, &str, &str, &str)]) -> Vec<NormalizedObject> {
    let objects = objects.iter().map(|(resource, name, base, text)| object(resource, name, base, text));
    let mut snapshot = Snapshot::default();
    snapshot.objects.extend(objects);
    state(&snapshot, &[], &TimeDependent::default())
}

#[test]
fn names_generated_from_generated_names_make_no_difference() {
    let job = |name: &str, pod: &str| {
        let (base, message) = (format!("{name}-"), format!("pod {pod} of {name} has ended"));
        state_of(&[("jobs", name, "fill-", &message), ("pods", pod, &base, &message)])
    };
    let (one, other) = (job("fill-abcde", "fill-abcde-x1y2z"), job("fill-k8s9q", "fill-k8s9q-01234"));
    assert_eq!(difference(&one, &other), None);
    let names: Vec<_> = one.iter().map(|normal| normal.name.as_str()).collect();
    assert_eq!(names, ["jobs default/fill-*", "pods default/fill-*-*"]);
    // The name of a ReplicaSet is not generated: it is the Deployment's name with the hash of the template.
    let deployment = |name: &str, pod: &str| {
        let set = format!("{name}-5d4f");
        let (pod, base) = (format!("{set}-{pod}"), format!("{set}-"));
        state_of(&[
            ("deployments", name, "web-", ""),
            ("replicasets", &set, "", &format!("of {name}")),
            ("pods", &pod, &base, &format!("{pod} runs")),
        ])
    };
    let (one, other) = (deployment("web-abcde", "x1y2z"), deployment("web-zzzzz", "01234"));
    assert_eq!(difference(&one, &other), None);
    let names: Vec<_> = one.iter().map(|normal| normal.name.as_str()).collect();
    assert_eq!(names, ["deployments default/web-*", "pods default/web-*-5d4f-*", "replicasets default/web-*-5d4f"]);
}

/// An app restarts Pods by a time in the template, which differs between two correct runs.
#[test]
fn template_hash_makes_no_difference() {
    let state = |hash: &str, restarted: &str, image: &str| {
        let (set, pod) = (format!("web-{hash}"), format!("web-{hash}-x1y2z"));
        let (id, _) = object("replicasets", &set, "", "");
        let template = json!({ "metadata": { "annotations": { "restartedAt": restarted } }, "image": image });
        let metadata = json!({ "name": set, "uid": "u1", "labels": { "pod-template-hash": hash } });
        let mut snapshot = Snapshot::default();
        let id = Id { group: "apps".into(), ..id };
        snapshot.objects.insert(id, Arc::new(json!({ "metadata": metadata, "spec": { "template": template } })));
        snapshot.objects.extend([object("pods", &pod, &format!("{set}-"), &format!("{pod} of {set}"))]);
        state(&snapshot, &[], &TimeDependent::default())
    };
    let one = state("5d4f", "2026-01-01T00:00:00Z", "a");
    assert_eq!(difference(&one, &state("9c8b", "2026-01-01T00:00:05Z", "a")), None);
    let names: Vec<_> = one.iter().map(|normal| normal.name.as_str()).collect();
    assert_eq!(names, ["pods default/web-*-*", "replicasets default/web-*"]);
    assert_ne!(difference(&one, &state("9c8b", "2026-01-01T00:00:05Z", "b")), None);
}

#[test]
fn secret_data_is_compared_without_uids_and_times() {
    let state = |uid: &str, time: &str, color: &str| {
        let (id, _) = object("secrets", "a", "", "");
        let texts = [("owner", format!("owned by {uid}")), ("made", time.to_owned()), ("color", color.to_owned())];
        let data = texts.map(|(name, text)| (name.to_owned(), json!(ByteString(text.into_bytes()))));
        let data: Map<String, Value> = data.into_iter().collect();
        let mut snapshot = Snapshot::default();
        let metadata = json!({ "name": "a", "uid": uid });
        snapshot.objects.insert(id, Arc::new(json!({ "metadata": metadata, "data": data })));
        state(&snapshot, &[], &TimeDependent::default())
    };
    let one = state("u1", "2026-01-01T00:00:00Z", "red");
    assert_eq!(difference(&one, &state("u2", "2026-01-01T00:00:05Z", "red")), None);
    let text = difference(&one, &state("u2", "2026-01-01T00:00:05Z", "blue")).unwrap();
    assert_eq!(text, r#"secrets default/a: .data.color is "Ymx1ZQ==" with these faults, and "cmVk" without"#);
}

#[test]
fn generated_name_in_a_longer_word_is_kept() {
    let of = |name: &str| state_of(&[("pods", "a1", "a", ""), ("configmaps", name, "", "a1 a11 qa1, a1-a1")]);
    let config = of("a1").remove(0);
    assert_eq!(config.name, "configmaps default/a*");
    assert_eq!(config.object["status"]["message"], "a* a11 qa1, a*-a*");
    assert_eq!(of("qa1-a11").remove(0).name, "configmaps default/qa1-a11");
}

#[test]
fn difference_names_the_object_and_the_field() {
    let one = snapshot(&[("web-a", "1", "2026-01-01T00:00:00Z")]);
    let two = snapshot(&[("web-a", "1", "2026-01-01T00:00:00Z"), ("web-b", "2", "2026-01-01T00:00:00Z")]);
    let other = snapshot(&[("web-a", "1", "never")]);
    let [one, two, other] = [one, two, other].map(|snapshot| state(&snapshot, &[], &TimeDependent::default()));
    let text = difference(&one, &other).unwrap();
    let field = r#".status.startTime is "never" with these faults, and "(a time)" without"#;
    assert_eq!(text, format!("pods default/web-*: {field}"));
    let surplus = "pods default/web-* is there only with these faults";
    assert_eq!(difference(&one, &two).unwrap(), format!("{surplus}; 2 objects with these faults, 1 without"));
    let missing = "pods default/web-* is there only without these faults";
    assert_eq!(difference(&two, &one).unwrap(), format!("{missing}; 1 objects with these faults, 2 without"));
}

#[test]
fn addresses_are_compared_unless_they_were_allocated() {
    let state = |service: Value, copy: &str| {
        let id = |resource: &str| Id { resource: resource.into(), ..object("", "a", "", "").0 };
        let site = json!({ "spec": { "clusterIP": copy }, "status": { "clusterIP": copy } });
        let mut snapshot = Snapshot::default();
        snapshot.objects.insert(id("services"), Arc::new(json!({ "spec": service })));
        snapshot.objects.insert(id("sites"), Arc::new(site));
        state(&snapshot, &[], &TimeDependent::default())
    };
    let of = |ip: &str| json!({ "clusterIP": ip, "clusterIPs": [ip], "ports": [{ "port": 80, "nodePort": 30_001 }] });
    let first = state(of("10.0.0.1"), "10.0.0.1");
    assert_eq!(difference(&first, &state(of("10.0.0.2"), "10.0.0.2")), None, "the site has a copy");
    let chosen = difference(&first, &state(of("10.0.0.1"), "10.9.9.9")).unwrap();
    assert!(chosen.starts_with(r#"sites default/a: .spec.clusterIP is "10.9.9.9" with these faults"#), "{chosen}");
    let headless = difference(&first, &state(of("None"), "10.0.0.1")).unwrap();
    assert!(headless.contains("services default/a: .spec.clusterIP is \"None\" with these faults"), "{headless}");
}

#[test]
fn difference_in_an_array_names_the_item() {
    let state = |conditions: Value| {
        let object = json!({ "status": { "conditions": conditions } });
        vec![NormalizedObject { name: "sites default/a".into(), resource: "sites".into(), object }]
    };
    let one = state(json!([{ "reason": "Fine" }, { "reason": "Slow" }]));
    let other = state(json!([{ "reason": "Fine" }, { "reason": "Late" }]));
    let field = r#".status.conditions[1].reason is "Late" with these faults, and "Slow" without"#;
    assert_eq!(difference(&one, &other).unwrap(), format!("sites default/a: {field}"));
    assert_eq!(field_to_ignore(&one, &other).unwrap(), "sites/status/conditions/1/reason");
    let longer = state(json!([{ "reason": "Fine" }, { "reason": "Slow" }, {}]));
    assert_eq!(field_to_ignore(&one, &longer).unwrap(), "sites/status/conditions");
    let long = difference(&one, &state("x".repeat(1_000).into())).unwrap();
    assert!(long.contains(&format!("is \"{}… with", "x".repeat(199))), "{long}");
}

#[test]
fn ignored_field_belongs_to_each_or_one_resource() {
    let cases = [
        ("/status/n", Some("/status/n")),
        ("sites/status/n", Some("/status/n")),
        ("sitesets/status/n", None),
        ("pods/status/n", None),
    ];
    for (ignored, expected) in cases {
        assert_eq!(pointer_in(ignored, "sites"), expected, "{ignored}");
    }
}

#[test]
fn ignored_fields_make_no_difference() {
    let (one, other) = (snapshot(&[("a", "1", "x")]), snapshot(&[("a", "1", "y")]));
    let ignored = ["/status/startTime".to_owned(), "/status/message".to_owned(), "/status/podIP".to_owned()];
    assert_eq!(
        difference(
            &state(&one, &ignored, &TimeDependent::default()),
            &state(&other, &ignored, &TimeDependent::default())
        ),
        None
    );
}
