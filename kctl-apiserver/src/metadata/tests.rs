//! Field errors of metadata, as kube-apiserver 1.37 reports them.

use serde_json::json;

use super::*;
use crate::field_errors::FieldError;

/// Checks the fields with an error, each once.
#[track_caller]
fn check_with(rule: NameRule, meta: &Value, expected: &[&str]) {
    let mut meta = meta.clone();
    meta["namespace"] = "ns".into();
    let mut errors = validate_metadata(&meta, Scope::Namespaced, rule);
    validate_finalizer_domains(&meta, &mut errors);
    let mut found: Vec<_> = errors.iter().map(|error| error.field.trim_start_matches("metadata.")).collect();
    found.dedup();
    assert_eq!(found, expected, "{meta}");
    assert!(errors.iter().all(|error| error.reason == "FieldValueInvalid"), "{errors:?}");
}

#[track_caller]
fn check(meta: &Value, expected: &[&str]) {
    check_with(NameRule::Subdomain, meta, expected);
}

/// Checks valid and invalid values of one field of an object that has a valid name.
#[track_caller]
fn check_field(field: &str, valid: &[Value], invalid: &[Value]) {
    for value in valid {
        check(&json!({ "name": "a", field: value }), &[]);
    }
    for value in invalid {
        check(&json!({ "name": "a", field: value }), &[field]);
    }
}

#[track_caller]
fn check_names(rule: NameRule, valid: &[&str], invalid: &[&str]) {
    for name in valid {
        check_with(rule, &json!({ "name": name }), &[]);
    }
    for name in invalid {
        check_with(rule, &json!({ "name": name }), &["name"]);
    }
}

#[test]
fn names_are_subdomains() {
    let invalid = ["A", "a_b", "-a", "a..b", "a/b", ".", "é", &"a".repeat(254)];
    check_names(NameRule::Subdomain, &["a.b", &"a".repeat(253)], &invalid);
}

/// Returns the rule for the names of a built-in kind.
fn rule_of(group: &str, kind: &str) -> NameRule {
    crate::kinds::ALL.iter().find(|found| (found.group, found.kind) == (group, kind)).unwrap().metadata.names
}

#[test]
fn names_of_services_and_namespaces_are_labels() {
    for (group, kind) in [("", "Service"), ("", "Namespace"), ("apps", "StatefulSet")] {
        let rule = rule_of(group, kind);
        check_names(rule, &["1a", &"a".repeat(63)], &["A", "a-", "a.b", &"a".repeat(64)]);
    }
}

#[test]
fn names_in_definitions_begin_with_a_letter() {
    check_names(NameRule::Label1035, &["a1"], &["1", "a.b", &"a".repeat(64)]);
}

#[test]
fn names_of_roles_are_path_segments() {
    let rule = rule_of("rbac.authorization.k8s.io", "ClusterRole");
    check_names(rule, &["system:A", &"A".repeat(300)], &[".", "..", "a/%b"]);
}

#[test]
fn cron_job_names_have_at_most_52_characters() {
    check_names(rule_of("batch", "CronJob"), &[&"a".repeat(52)], &[&"a".repeat(53)]);
}

#[test]
fn generated_names_are_judged_by_prefix_and_name() {
    check(&json!({"name": "A", "generateName": "B"}), &["generateName", "name"]);
    check(&json!({"generateName": "a-"}), &[]);
    check(&json!({"generateName": "-"}), &["generateName"]);
    check_with(NameRule::Label, &json!({"name": "a.x", "generateName": "a."}), &["generateName", "name"]);
}

#[test]
fn namespace_goes_with_the_scope() {
    let errors = validate_metadata(&json!({"name": "a", "namespace": "b"}), Scope::Cluster, NameRule::Subdomain);
    assert_eq!(*errors, [FieldError::forbidden("metadata.namespace", "not allowed on this type")]);
    let errors = validate_metadata(&json!({"name": "a"}), Scope::Namespaced, NameRule::Subdomain);
    assert_eq!(*errors, [FieldError::required("metadata.namespace", "")]);
}

#[test]
fn keys_of_labels_are_qualified_names() {
    let labels = |keys: &[&str]| keys.iter().map(|key| json!({ *key: "a" })).collect::<Vec<_>>();
    let (long, prefix) = ("a".repeat(64), format!("{}/b", "a".repeat(254)));
    let invalid = ["", "a/", "/b", "a/b/c", "A_/b", "-a", "é", &long, &prefix];
    check_field("labels", &labels(&["a.b/C_d", &long[1..]]), &labels(&invalid));
}

#[test]
fn values_of_labels_are_short_and_plain() {
    let labels = |values: &[&str]| values.iter().map(|value| json!({ "a": value })).collect::<Vec<_>>();
    let long = "a".repeat(64);
    check_field("labels", &labels(&["", "E.f", &long[1..]]), &labels(&["b c", "-", &long, &"é".repeat(40)]));
}

#[test]
fn keys_of_annotations_may_have_upper_case_prefixes() {
    check_field("annotations", &[json!({"A.B/c": "x y"})], &[json!({"K B": "x"})]);
}

#[test]
fn annotations_have_at_most_256_kibibytes() {
    let meta = |len: usize| json!({"name": "a", "namespace": "ns", "annotations": {"a": "x".repeat(len)}});
    assert_eq!(*validate_metadata(&meta(262_143), Scope::Namespaced, NameRule::Subdomain), []);
    let error = FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX);
    assert_eq!(*validate_metadata(&meta(262_144), Scope::Namespaced, NameRule::Subdomain), [error]);
}

#[test]
fn finalizers_are_standard_or_qualified() {
    let valid = [json!(["kubernetes"]), json!(["orphan"]), json!(["foregroundDeletion"]), json!(["a/b", "a/b"])];
    check_field("finalizers", &valid, &[json!(["a/b/c"]), json!(["orphan", "foregroundDeletion"])]);
    check(&json!({"name": "a", "finalizers": ["a.b/c", "x"]}), &["finalizers[1]"]);
    check(&json!({"name": "a", "finalizers": [""]}), &["finalizers", "finalizers[0]"]);
}

#[test]
fn owner_references_need_four_fields() {
    let meta = json!({"name": "a", "namespace": "ns", "ownerReferences": [{}]});
    let required = |field| FieldError::required(&format!("metadata.ownerReferences[0].{field}"), "");
    let expected = ["apiVersion", "kind", "name", "uid"].map(required);
    assert_eq!(*validate_metadata(&meta, Scope::Namespaced, NameRule::Subdomain), expected);
    let version = &["ownerReferences[0].apiVersion"][..];
    for (api_version, expected) in [("/v1", &[][..]), ("Q W/v 1", &[]), ("apps/", version), ("a/b/c", version)] {
        let owner = json!({"apiVersion": api_version, "kind": "A", "name": "n", "uid": "u"});
        check(&json!({"name": "a", "ownerReferences": [owner]}), expected);
    }
}

#[test]
fn events_own_nothing() {
    let owner = |api_version: &str| json!([{"apiVersion": api_version, "kind": "Event", "name": "b", "uid": "u"}]);
    check(&json!({"name": "a", "ownerReferences": owner("events.k8s.io/v1")}), &[]);
    check(&json!({"name": "a", "ownerReferences": owner("v1")}), &["ownerReferences[0]"]);
}

#[test]
fn generation_is_not_negative() {
    check_field("generation", &[], &[json!(-1)]);
}

#[test]
fn generation_wraps_after_the_largest() {
    let mut object = json!({ "metadata": { "generation": i64::MAX } });
    let stored = generation(&object);
    increment_generation(&mut object, stored);
    assert_eq!(object["metadata"]["generation"], i64::MIN);
    increment_generation(&mut object, 1);
    assert_eq!(object["metadata"]["generation"], 2);
}
