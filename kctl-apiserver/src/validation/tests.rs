//! Cases that the recorded answers of kube-apiserver do not cover.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Errors, environment, mounts, resources, volume::DeclaredVolumes};
use crate::{
    field::Field,
    kinds::{batch::job, discovery::endpoint_slice, resource},
};

/// Returns types and paths of the errors that a rule adds.
fn rule_errors(rule: impl FnOnce(&mut Errors)) -> BTreeSet<(&'static str, String)> {
    Errors::collect(rule).into_iter().map(|error| (error.reason, error.field)).collect()
}

fn set<const N: usize>(expected: [(&'static str, &str); N]) -> BTreeSet<(&'static str, String)> {
    expected.map(|(reason, field)| (reason, field.to_owned())).into()
}

#[test]
fn empty_mount_propagation_forbids_recursive_read_only() {
    let mount = json!({ "name": "v", "mountPath": "/a", "readOnly": true, "recursiveReadOnly": "Enabled", "mountPropagation": "" });
    let container = json!({ "volumeMounts": [mount] });
    let errors = rule_errors(|errors| {
        mounts::validate_mounts(&Field::new(&container, "c", errors), &DeclaredVolumes::default());
    });
    let expected = set([
        ("FieldValueForbidden", "c.volumeMounts.recursiveReadOnly"),
        ("FieldValueNotFound", "c.volumeMounts[0].name"),
        ("FieldValueNotSupported", "c.volumeMounts.mountPropagation"),
    ]);
    assert_eq!(errors, expected);
}

/// Takes minutes if each mount is compared with each volume and each device.
#[test]
fn many_mounts_of_many_volumes_are_validated() {
    let names: Vec<String> = (0..50_000).map(|n| format!("v{n}")).collect();
    let mounts: Value = names.iter().map(|name| json!({ "name": name, "mountPath": format!("/{name}") })).collect();
    let devices: Value = names.iter().map(|name| json!({ "name": format!("d-{name}"), "devicePath": name })).collect();
    let container = json!({ "volumeMounts": mounts, "volumeDevices": devices });
    let volumes = DeclaredVolumes { names: names.iter().map(String::as_str).collect(), ..DeclaredVolumes::default() };
    let errors = rule_errors(|errors| mounts::validate_mounts(&Field::new(&container, "c", errors), &volumes));
    assert_eq!(errors.len(), names.len(), "no device has a volume");
}

/// Takes minutes if each claim is compared with all others.
#[test]
fn claim_is_listed_whole_or_by_requests() {
    let names: Vec<String> = (0..50_000).map(|n| format!("claim-{n}")).collect();
    let declared: BTreeSet<&str> = names.iter().map(String::as_str).chain(["a", "b", "c"]).collect();
    let claims_errors = |claims: Value| {
        let requirements = json!({ "claims": claims });
        rule_errors(|errors| {
            let field = Field::new(&requirements, "r", errors);
            resources::validate_requirements(&field, resources::validate_container_resource_name, &declared);
        })
    };
    assert_eq!(claims_errors(names.iter().map(|name| json!({ "name": name })).collect()), set([]));
    let listed = [("a", ""), ("a", "x"), ("b", "x"), ("b", "y"), ("b", ""), ("c", "x"), ("c", "x"), ("d", "")];
    let claims = listed.map(|(name, request)| json!({ "name": name, "request": request }));
    let expected = set([
        ("FieldValueDuplicate", "r.claims[1]"),
        ("FieldValueDuplicate", "r.claims[4]"),
        ("FieldValueDuplicate", "r.claims[6]"),
        ("FieldValueNotFound", "r.claims[7]"),
    ]);
    assert_eq!(claims_errors(claims.to_vec().into()), expected);
}

#[test]
fn env_source_errors_do_not_repeat_list() {
    let sources = Value::from(vec![json!({}); 2000]);
    let errors = Errors::collect(|errors| environment::validate_sources(&Field::new(&sources, "envFrom", errors)));
    let n_bytes: usize = errors.iter().map(|error| error.message.len()).sum();
    assert_eq!(errors.len(), 2000);
    assert!(n_bytes < 2000 * 200, "{n_bytes} bytes");
}

#[test]
fn addresses_beyond_the_limit_are_validated() {
    let mut addresses = vec![json!("10.0.0.1"); 100];
    addresses.push(json!("x"));
    let slice = json!({ "addressType": "IPv4", "endpoints": [{ "addresses": addresses }] });
    let errors = rule_errors(|errors| {
        errors.too_many("endpoints[0].addresses", 101, 100);
        endpoint_slice::validation::validate_create(&slice, errors);
    });
    let expected =
        set([("FieldValueInvalid", "endpoints[0].addresses[100]"), ("FieldValueTooMany", "endpoints[0].addresses")]);
    assert_eq!(errors, expected);
}

#[test]
fn endpoints_and_ports_of_slice_are_bounded() {
    let endpoints = |n: usize| vec![json!({ "addresses": ["10.0.0.1"], "hostname": "A" }); n];
    let ports = |n: usize| (0..n).map(|n| json!({ "name": format!("p{n}") })).collect::<Value>();
    let slice = |n: usize, ports: Value| json!({ "addressType": "IPv4", "endpoints": endpoints(n), "ports": ports });
    let created = |slice: &Value| rule_errors(|errors| endpoint_slice::validation::validate_create(slice, errors));
    assert_eq!(created(&slice(0, ports(20_000))), set([]));
    assert_eq!(created(&slice(0, vec![json!({ "name": "A" }); 20_001].into())), set([("FieldValueTooMany", "ports")]));
    assert_eq!(created(&slice(1_000, ports(0))).len(), 1_000);
    let long = slice(1_001, ports(0));
    assert_eq!(created(&long), set([("FieldValueTooMany", "endpoints")]));
    // Endpoints that an update does not change are not validated.
    assert_eq!(rule_errors(|errors| endpoint_slice::validation::validate(&long, &long, errors)), set([]));
}

#[test]
fn binding_conditions_beyond_the_limit_are_compared() {
    let device = json!({ "bindingConditions": ["x"], "bindingFailureConditions": ["a", "b", "c", "d", "x"] });
    let errors = rule_errors(|errors| {
        errors.too_many("d.bindingFailureConditions", 5, 4);
        resource::validation::validate_binding_conditions(&Field::new(&device, "d", errors));
    });
    let expected = set([
        ("FieldValueInvalid", "d.bindingFailureConditions[4]"),
        ("FieldValueTooMany", "d.bindingFailureConditions"),
    ]);
    assert_eq!(errors, expected);
}

#[test]
fn succeeded_count_exceeds_neither_completions_nor_indexes() {
    let job = |completions: i64, count: i64| {
        let rule = json!({ "succeededIndexes": "0", "succeededCount": count });
        let policy = json!({ "rules": [rule] });
        json!({ "spec": { "completionMode": "Indexed", "completions": completions, "successPolicy": policy } })
    };
    let path = "spec.successPolicy.rules[0].succeededCount".to_owned();
    for (completions, count, is_invalid) in [(-1, 0, true), (3, 1, false), (3, 2, true)] {
        let errors = rule_errors(|errors| job::validation::validate(&job(completions, count), errors));
        assert_eq!(errors.contains(&("FieldValueInvalid", path.clone())), is_invalid, "{completions} {count}");
    }
}
