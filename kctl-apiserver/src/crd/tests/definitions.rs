//! Names, versions, conversion and subresources of CRDs.

use serde_json::{Value, json};

use super::check_with;

/// Returns a version of a CRD whose schema has this type.
fn version(name: &str, storage: &Value, schema_type: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": schema_type}});
    json!({"name": name, "served": true, "storage": storage, "schema": schema})
}

#[test]
fn crd_names_are_validated_and_match_metadata_name() {
    let names = "/spec/names";
    let at = |field: &str| format!("{names}/{field}");
    check_with([("/metadata/name", json!("foo.example.com"))], &["Invalid metadata.name"]);
    let required = ["Required spec.names.singular", "Required spec.names.kind", "Required spec.names.listKind"];
    check_with([(&at("kind"), json!(""))], &required);
    check_with([(&at("plural"), json!(""))], &["Invalid metadata.name", "Required spec.names.plural"]);
    check_with(
        [("/metadata/name", json!("Things.def.crdtest.example.com")), (&at("plural"), json!("Things"))],
        &["Invalid metadata.name", "Invalid spec.names.plural"],
    );
    check_with(
        [
            (&at("kind"), json!("thing_x")),
            (&at("singular"), json!("X Y")),
            (&at("listKind"), json!("1a")),
            (&at("shortNames"), json!(["A", "ok", "ok"])),
            (&at("categories"), json!(["B C"])),
        ],
        &[
            "Invalid spec.names.singular",
            "Invalid spec.names.kind",
            "Invalid spec.names.listKind",
            "Invalid spec.names.shortNames[0]",
            "Invalid spec.names.categories[0]",
        ],
    );
    check_with([(&at("listKind"), json!("Thing"))], &["Invalid spec.names.listKind"]);
    check_with([(&at("singular"), json!("things")), (&at("shortNames"), json!(["thing", "things"]))], &[]);
}

#[test]
fn groups_are_domains() {
    let (name, group, annotation) =
        ("/metadata/name", "/spec/group", "metadata.annotations[api-approved.kubernetes.io]");
    check_with([(group, json!(""))], &["Invalid metadata.name", "Required spec.group"]);
    check_with([(group, json!("Foo_"))], &["Invalid metadata.name", "Invalid spec.group"]);
    check_with([(name, json!("things.foo")), (group, json!("foo"))], &["Invalid spec.group"]);
    let protected = [(name, json!("things.foo.k8s.io")), (group, json!("foo.k8s.io"))];
    check_with(protected.clone(), &[&format!("Required {annotation}")]);
    let [name, group] = protected;
    let annotations = ("/metadata/annotations", json!({"api-approved.kubernetes.io": "x"}));
    check_with([name, group, annotations], &[&format!("Invalid {annotation}")]);
}

#[test]
fn scope_is_one_of_two() {
    check_with([("/spec/scope", json!("Foo"))], &["NotSupported spec.scope"]);
    check_with([("/spec/scope", json!(""))], &["Required spec.scope"]);
    check_with([("/spec/scope", json!(null))], &["Required spec.scope"]);
}

#[test]
fn exactly_one_version_is_stored() {
    let expected = ["Invalid spec.versions", "Invalid status.storedVersions"];
    let two = json!([version("v1", &json!(true), "object"), version("v2", &json!(true), "object")]);
    for versions in [json!([]), json!(null), two] {
        check_with([("/spec/versions", versions)], &expected);
    }
    check_with([("/spec/versions/0/storage", json!(false))], &expected);
    check_with([("/spec/versions/0/served", json!(false))], &[]);
}

#[test]
fn versions_have_names_and_schemas() {
    let (stored, not_stored) = (&json!(true), &json!(false));
    let twice = json!([version("v1", stored, "object"), version("v1", not_stored, "object")]);
    check_with([("/spec/versions", twice)], &["Invalid spec.versions"]);
    let properties = ("/spec/versions/0/schema/openAPIV3Schema/properties", json!(null));
    let invalid = ["Invalid spec.versions[0].name", "Invalid spec.version"];
    check_with([("/spec/versions/0/name", json!("V_1")), properties.clone()], &invalid);
    check_with([("/spec/versions/0/name", json!("")), properties], &invalid[..1]);
    for schema in ["/spec/versions/0/schema", "/spec/versions/0/schema/openAPIV3Schema"] {
        check_with([(schema, json!(null))], &["Required spec.versions[0].schema.openAPIV3Schema"]);
    }
    let other = json!([version("v1", stored, "object"), version("v2", not_stored, "string")]);
    check_with([("/spec/versions", other)], &["Invalid spec.versions[1].schema.openAPIV3Schema.type"]);
}

#[test]
fn all_errors_are_reported_together() {
    let versions = json!([version("v1", &json!(false), "object"), version("v1", &json!(false), "object")]);
    check_with(
        [("/spec/group", json!("")), ("/spec/scope", json!("")), ("/spec/versions", versions)],
        &[
            "Invalid metadata.name",
            "Required spec.group",
            "Required spec.scope",
            "Invalid spec.versions",
            "Invalid status.storedVersions",
        ],
    );
}

#[test]
fn only_deprecated_versions_have_a_warning() {
    let (warning, expected) = ("/spec/versions/0/deprecationWarning", ["Invalid spec.versions[0].deprecationWarning"]);
    check_with([(warning, json!("x"))], &expected);
    check_with([("/spec/versions/0/deprecated", json!(true)), (warning, json!(""))], &expected);
}

#[test]
fn conversion_has_a_strategy_and_what_it_needs() {
    check_with([("/spec/preserveUnknownFields", json!(true))], &["Invalid spec.preserveUnknownFields"]);
    let check = |conversion: Value, expected: &[&str]| check_with([("/spec/conversion", conversion)], expected);
    check(json!({"strategy": "Foo"}), &["NotSupported spec.conversion.strategy"]);
    check(
        json!({"strategy": "Webhook"}),
        &["Required spec.conversion.webhookClientConfig", "Required spec.conversion.conversionReviewVersions"],
    );
    check(
        json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        &["Forbidden spec.conversion.conversionReviewVersions"],
    );
    check(json!({}), &["Required spec.conversion.strategy"]);
    let client_config = json!({"service": {"namespace": "a", "name": "b"}});
    let webhook = json!({"clientConfig": client_config, "conversionReviewVersions": ["v1"]});
    check(json!({"strategy": "Webhook", "webhook": webhook}), &[]);
}

#[test]
fn paths_of_scale_are_below_spec_and_status() {
    let path = |field: &str| format!("spec.subresources.scale.{field}");
    let check = |scale: Value, expected: &[String]| {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_with([("/spec/versions/0/subresources", json!({"status": {}, "scale": scale}))], &expected);
    };
    let both =
        |reason: &str| ["specReplicasPath", "statusReplicasPath"].map(|field| format!("{reason} {}", path(field)));
    check(json!({"specReplicasPath": "spec.replicas", "statusReplicasPath": ".foo"}), &both("Invalid"));
    check(json!({}), &both("Required"));
    let selector = [format!("Invalid {}", path("labelSelectorPath"))];
    for (spec, status, labels) in
        [(".spec.replicas", ".status.replicas", ".foo"), (".spec.replicas[0]", ".status.replicas.", "x")]
    {
        let scale = json!({"specReplicasPath": spec, "statusReplicasPath": status, "labelSelectorPath": labels});
        check(scale, &selector);
    }
}

#[test]
fn deeply_nested_rule_is_an_error() {
    let default = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    for rule in ["(".repeat(200_000), "[".repeat(5_000), "a&&".repeat(6_600) + "a"] {
        let (rule_len, rules) = (rule.len(), json!([{"rule": rule}]));
        let spec = json!({"type": "object", "default": {}, "x-kubernetes-validations": rules});
        let mut object = super::with(|object| *object.pointer_mut(default).unwrap() = spec);
        crate::crd::default_definition(&mut object);
        let errors = crate::crd::validate_definition(&object);
        let field = "spec.validation.openAPIV3Schema.properties[spec]";
        assert!(errors.iter().any(|error| error.field.starts_with(field)), "{rule_len} bytes");
    }
}
