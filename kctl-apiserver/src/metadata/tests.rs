//! Causes that kube-apiserver 1.36 listed for the metadata of objects.

use super::*;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Checks the messages and fields of invalid values, in the order of the real server.
#[track_caller]
fn check_with(rule: NameRule, meta: &Value, expected: &[(&str, &str)]) {
    let mut meta = meta.clone();
    meta["namespace"] = "ns".into();
    let errors = validate_metadata(&meta, true, rule);
    let found: Vec<_> = errors.iter().map(|error| (error.field.as_str(), error.message.as_str())).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(field, detail)| (format!("metadata.{field}"), format!("Invalid value: {detail}")))
        .collect();
    let expected: Vec<_> = expected.iter().map(|(field, message)| (field.as_str(), message.as_str())).collect();
    assert_eq!(found, expected);
    assert!(errors.iter().all(|error| error.reason == "FieldValueInvalid"));
}

#[track_caller]
fn check(meta: &Value, expected: &[(&str, &str)]) {
    check_with(NameRule::Subdomain, meta, expected);
}

/// Checks one field of an object that has a good name.
#[track_caller]
fn check_field(field: &str, value: &Value, messages: &[String]) {
    let expected: Vec<_> = messages.iter().map(|message| (field, message.as_str())).collect();
    check(&json!({"name": "a", field: value}), &expected);
}

#[track_caller]
fn check_name(rule: NameRule, name: &str, details: &[&str]) {
    let messages: Vec<_> = details.iter().map(|detail| format!("{name:?}: {detail}")).collect();
    let expected: Vec<_> = messages.iter().map(|message| ("name", message.as_str())).collect();
    check_with(rule, &json!({ "name": name }), &expected);
}

#[test]
fn missing_name_is_required() {
    for meta in
        [json!({"namespace": "ns"}), json!({"namespace": "ns", "name": ""}), json!({"namespace": "ns", "name": 1})]
    {
        let message = "Required value: name or generateName is required".to_owned();
        let error = FieldError { reason: "FieldValueRequired", message, field: "metadata.name".to_owned() };
        assert_eq!(validate_metadata(&meta, true, NameRule::Subdomain), [error]);
    }
}

#[test]
fn names_are_subdomains() {
    for name in ["A", "a_b", "-a", "a..b", "a/b", ".", "é"] {
        check_name(NameRule::Subdomain, name, &[SUBDOMAIN]);
    }
    check_name(NameRule::Subdomain, "a.b", &[]);
}

#[test]
fn names_have_at_most_253_characters() {
    let text = "must be no more than 253 characters";
    check_name(NameRule::Subdomain, &"a".repeat(252), &[]);
    check_name(NameRule::Subdomain, &"a".repeat(253), &[]);
    check_name(NameRule::Subdomain, &"a".repeat(254), &[text]);
    check_name(NameRule::Subdomain, &"A".repeat(254), &[text, SUBDOMAIN]);
}

/// Returns the rule for the names of a built-in kind.
fn rule_of(group: &str, kind: &str) -> NameRule {
    crate::kinds::ALL.iter().find(|one| (one.group, one.kind) == (group, kind)).unwrap().names
}

#[test]
fn names_of_services_and_namespaces_are_labels() {
    for (group, kind) in [("", "Service"), ("", "Namespace"), ("apps", "StatefulSet")] {
        let rule = rule_of(group, kind);
        check_name(rule, "A", &[LABEL]);
        check_name(rule, "a-", &[LABEL]);
        check_name(rule, "1a", &[]);
        check_name(rule, "a.b", &["must not contain dots"]);
        check_name(rule, &"a".repeat(63), &[]);
        check_name(rule, &"A".repeat(64), &["must be no more than 63 characters", LABEL]);
    }
}

#[test]
fn names_in_definitions_begin_with_a_letter() {
    let text = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    check_name(NameRule::Label1035, "1", &[text]);
    check_name(NameRule::Label1035, "a.b", &[text]);
    check_name(NameRule::Label1035, "a1", &[]);
}

#[test]
fn names_of_roles_are_path_segments() {
    let rule = rule_of("rbac.authorization.k8s.io", "ClusterRole");
    check_name(rule, "system:A", &[]);
    check_name(rule, &"A".repeat(300), &[]);
    check_name(rule, ".", &["may not be '.'"]);
    check_name(rule, "..", &["may not be '..'"]);
    check_name(rule, "a/%b", &["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn names_of_cron_jobs_have_at_most_52_characters() {
    let rule = rule_of("batch", "CronJob");
    check_name(rule, &"a".repeat(52), &[]);
    check_name(rule, &"a".repeat(53), &["must be no more than 52 characters"]);
}

#[test]
fn generated_names_are_judged_by_prefix_and_name() {
    let expected = [("generateName", &*format!("\"B\": {SUBDOMAIN}")), ("name", &format!("\"A\": {SUBDOMAIN}"))];
    check(&json!({"name": "A", "generateName": "B"}), &expected);
    check(&json!({"generateName": "a-"}), &[]);
    check(&json!({"generateName": "-"}), &[("generateName", &*format!("\"-\": {SUBDOMAIN}"))]);
    let dots = [("generateName", &*format!("\"a.\": {LABEL}")), ("name", "\"a.x\": must not contain dots")];
    check_with(NameRule::Label, &json!({"name": "a.x", "generateName": "a."}), &dots);
}

#[test]
fn namespace_goes_with_the_scope() {
    let errors = validate_metadata(&json!({"name": "a", "namespace": "b"}), false, NameRule::Subdomain);
    assert_eq!(errors, [FieldError::forbidden("metadata.namespace", "not allowed on this type")]);
    let errors = validate_metadata(&json!({"name": "a"}), true, NameRule::Subdomain);
    assert_eq!(errors, [FieldError::required("metadata.namespace", "")]);
}

#[test]
fn keys_of_labels_are_qualified_names() {
    let check_key = |key: &str, details: &[&str]| {
        let messages: Vec<_> = details.iter().map(|detail| format!("{key:?}: {detail}")).collect();
        check_field("labels", &json!({ key: "a" }), &messages);
    };
    check_key("", &["name part must be non-empty", NAME_PART]);
    check_key("a/", &["name part must be non-empty", NAME_PART]);
    check_key("/b", &["prefix part must be non-empty"]);
    check_key("a/b/c", &[KEY]);
    check_key("A_/b", &[&format!("prefix part {SUBDOMAIN}")]);
    check_key("-a", &[NAME_PART]);
    check_key("é", &[NAME_PART]);
    check_key(&"a".repeat(63), &[]);
    check_key(&"a".repeat(64), &["name part must be no more than 63 bytes"]);
    check_key(&format!("{}/b", "a".repeat(254)), &["prefix part must be no more than 253 bytes"]);
    check_key("a.b/C_d", &[]);
}

#[test]
fn values_of_labels_are_short_and_plain() {
    let check_value = |value: &str, details: &[&str]| {
        let messages: Vec<_> = details.iter().map(|detail| format!("{value:?}: {detail}")).collect();
        check_field("labels", &json!({ "a": value }), &messages);
    };
    check_value("", &[]);
    check_value("E.f", &[]);
    check_value("b c", &[VALUE]);
    check_value("-", &[VALUE]);
    check_value(&"a".repeat(63), &[]);
    check_value(&"a".repeat(64), &["must be no more than 63 bytes"]);
    check_value(&"é".repeat(40), &["must be no more than 63 bytes", VALUE]);
}

#[test]
fn keys_of_annotations_may_have_upper_case_prefixes() {
    check_field("annotations", &json!({"A.B/c": "x y"}), &[]);
    check_field("annotations", &json!({"K B": "x"}), &[format!("\"K B\": {NAME_PART}")]);
}

#[test]
fn annotations_have_at_most_256_kibibytes() {
    let meta = |len: usize| json!({"name": "a", "namespace": "ns", "annotations": {"a": "x".repeat(len)}});
    assert_eq!(validate_metadata(&meta(262_142), true, NameRule::Subdomain), []);
    assert_eq!(validate_metadata(&meta(262_143), true, NameRule::Subdomain), []);
    let message = "Too long: may not be more than 262144 bytes".to_owned();
    let error = FieldError { reason: "FieldValueTooLong", message, field: "metadata.annotations".to_owned() };
    assert_eq!(validate_metadata(&meta(262_144), true, NameRule::Subdomain), [error]);
}

#[test]
fn finalizers_are_standard_or_qualified() {
    for good in [json!(["kubernetes"]), json!(["orphan"]), json!(["foregroundDeletion"]), json!(["a/b", "a/b"])] {
        check_field("finalizers", &good, &[]);
    }
    let neither = "name is neither a standard finalizer name nor is it fully qualified";
    check(&json!({"name": "a", "finalizers": ["a.b/c", "x"]}), &[("finalizers[1]", &*format!("\"x\": {neither}"))]);
    check_field("finalizers", &json!(["a/b/c"]), &[format!("\"a/b/c\": {KEY}")]);
    let expected = [
        ("finalizers", "\"\": name part must be non-empty"),
        ("finalizers", &*format!("\"\": {NAME_PART}")),
        ("finalizers[0]", &*format!("\"\": {neither}")),
    ];
    check(&json!({"name": "a", "finalizers": [""]}), &expected);
}

#[test]
fn orphan_and_foreground_deletion_exclude_each_other() {
    let text = r#"["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#;
    check_field("finalizers", &json!(["orphan", "foregroundDeletion"]), &[text.to_owned()]);
}

#[test]
fn owner_references_need_four_fields() {
    let empty = r#""": must not be empty"#;
    let expected = [
        ("ownerReferences.apiVersion", r#""": version must not be empty"#),
        ("ownerReferences.kind", empty),
        ("ownerReferences.name", empty),
        ("ownerReferences.uid", empty),
    ];
    check(&json!({"name": "a", "ownerReferences": [{}]}), &expected);
    for (api_version, is_good) in [("/v1", true), ("Q W/v 1", true), ("apps/", false), ("a/b/c", false)] {
        let owner = json!({"apiVersion": api_version, "kind": "A", "name": "n", "uid": "u"});
        let message = format!("{api_version:?}: version must not be empty");
        let expected = [("ownerReferences.apiVersion", message.as_str())];
        check(&json!({"name": "a", "ownerReferences": [owner]}), if is_good { &[] } else { &expected });
    }
}

#[test]
fn only_one_owner_controls() {
    let owner = |name: &str| json!({"apiVersion": "v1", "blockOwnerDeletion": false, "controller": true, "kind": "A", "name": name, "uid": "u"});
    let shown = |name: &str| owner(name).to_string();
    let message = |second: &str| {
        format!(
            r#"[{},{},{}]: Only one reference can have Controller set to true. Found "true" in references for A/b and A/{second}"#,
            shown("b"),
            shown("c"),
            shown("d")
        )
    };
    check_field("ownerReferences", &json!([owner("b")]), &[]);
    check_field("ownerReferences", &json!([owner("b"), owner("c"), owner("d")]), &[message("c"), message("d")]);
}

#[test]
fn events_own_nothing() {
    let owner = |api_version: &str| json!([{"apiVersion": api_version, "kind": "Event", "name": "b", "uid": "u"}]);
    let text =
        r#"{"apiVersion":"v1","kind":"Event","name":"b","uid":"u"}: /v1, Kind=Event is disallowed from being an owner"#;
    check_field("ownerReferences", &owner("v1"), &[text.to_owned()]);
    check_field("ownerReferences", &owner("events.k8s.io/v1"), &[]);
}

#[test]
fn generation_is_not_negative() {
    check_field("generation", &json!(-1), &["-1: must be greater than or equal to 0".to_owned()]);
}

#[test]
fn errors_come_in_the_order_of_the_server() {
    let meta = json!({
        "name": "A", "namespace": "ns", "labels": {"a b": "c d"}, "annotations": {"x y": "z"},
        "finalizers": ["a b"], "ownerReferences": [{}]
    });
    let errors = validate_metadata(&meta, true, NameRule::Subdomain);
    let fields: Vec<_> = errors.iter().map(|error| error.field.trim_start_matches("metadata.")).collect();
    let owner = ["ownerReferences.apiVersion", "ownerReferences.kind", "ownerReferences.name", "ownerReferences.uid"];
    let expected = [&["name", "labels", "labels", "annotations"], &owner[..], &["finalizers", "finalizers[0]"]];
    assert_eq!(fields, expected.concat());
}
