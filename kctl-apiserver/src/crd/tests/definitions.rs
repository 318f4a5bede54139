//! Names, versions, conversion and subresources of definitions.

use serde_json::json;

use super::check_with;

#[test]
fn names_are_lower_case_and_agree_with_the_name_of_the_object() {
    check_with(
        |o| {
            o["metadata"]["name"] = json!("foo.example.com");
        },
        &[
            r#"FieldValueInvalid metadata.name: Invalid value: "foo.example.com": must be spec.names.plural+"."+spec.group"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["names"]["kind"] = json!("");
        },
        &[
            "FieldValueRequired spec.names.singular: Required value",
            "FieldValueRequired spec.names.kind: Required value",
            "FieldValueRequired spec.names.listKind: Required value",
        ],
    );
    check_with(
        |o| {
            o["spec"]["names"]["plural"] = json!("");
        },
        &[
            r#"FieldValueInvalid metadata.name: Invalid value: "things.def.crdtest.example.com": must be spec.names.plural+"."+spec.group"#,
            "FieldValueRequired spec.names.plural: Required value",
        ],
    );
    check_with(
        |o| {
            o["metadata"]["name"] = json!("Things.def.crdtest.example.com");
            o["spec"]["names"]["plural"] = json!("Things");
        },
        &[
            r#"FieldValueInvalid metadata.name: Invalid value: "Things.def.crdtest.example.com": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
            r#"FieldValueInvalid spec.names.plural: Invalid value: "Things": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["names"]["kind"] = json!("thing_x");
            o["spec"]["names"]["singular"] = json!("X Y");
            o["spec"]["names"]["listKind"] = json!("1a");
            o["spec"]["names"]["shortNames"] = json!(["A", "ok", "ok"]);
            o["spec"]["names"]["categories"] = json!(["B C"]);
        },
        &[
            r#"FieldValueInvalid spec.names.singular: Invalid value: "X Y": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.names.kind: Invalid value: "thing_x": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.names.listKind: Invalid value: "1a": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.names.shortNames[0]: Invalid value: "A": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.names.categories[0]: Invalid value: "B C": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["names"]["listKind"] = json!("Thing");
        },
        &[r#"FieldValueInvalid spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same"#],
    );
    check_with(
        |o| {
            o["spec"]["names"]["singular"] = json!("things");
            o["spec"]["names"]["shortNames"] = json!(["thing", "things"]);
        },
        &[],
    );
}

#[test]
fn groups_are_domains() {
    check_with(
        |o| {
            o["spec"]["group"] = json!("");
        },
        &[
            r#"FieldValueInvalid metadata.name: Invalid value: "things.def.crdtest.example.com": must be spec.names.plural+"."+spec.group"#,
            "FieldValueRequired spec.group: Required value",
        ],
    );
    check_with(
        |o| {
            o["spec"]["group"] = json!("Foo_");
        },
        &[
            r#"FieldValueInvalid metadata.name: Invalid value: "things.def.crdtest.example.com": must be spec.names.plural+"."+spec.group"#,
            r#"FieldValueInvalid spec.group: Invalid value: "Foo_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
        ],
    );
    check_with(
        |o| {
            o["metadata"]["name"] = json!("things.foo");
            o["spec"]["group"] = json!("foo");
        },
        &[r#"FieldValueInvalid spec.group: Invalid value: "foo": should be a domain with at least one dot"#],
    );
    check_with(
        |o| {
            o["metadata"]["name"] = json!("things.foo.k8s.io");
            o["spec"]["group"] = json!("foo.k8s.io");
        },
        &[
            r#"FieldValueRequired metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111"#,
        ],
    );
    check_with(
        |o| {
            o["metadata"]["name"] = json!("things.foo.k8s.io");
            o["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "x"});
            o["spec"]["group"] = json!("foo.k8s.io");
        },
        &[
            r#"FieldValueInvalid metadata.annotations[api-approved.kubernetes.io]: Invalid value: "x": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111"#,
        ],
    );
}

#[test]
fn scope_is_one_of_two() {
    check_with(
        |o| {
            o["spec"]["scope"] = json!("Foo");
        },
        &[r#"FieldValueNotSupported spec.scope: Unsupported value: "Foo": supported values: "Cluster", "Namespaced""#],
    );
    check_with(
        |o| {
            o["spec"]["scope"] = json!("");
        },
        &["FieldValueRequired spec.scope: Required value"],
    );
    check_with(
        |o| {
            o["spec"]["scope"] = json!(null);
        },
        &["FieldValueRequired spec.scope: Required value"],
    );
}

#[test]
fn exactly_one_version_is_stored() {
    check_with(
        |o| {
            o["spec"]["versions"] = json!([]);
        },
        &[
            "FieldValueInvalid spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            "FieldValueInvalid status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"] = json!(null);
        },
        &[
            "FieldValueInvalid spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            "FieldValueInvalid status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["storage"] = json!(false);
        },
        &[
            r#"FieldValueInvalid spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version"#,
            "FieldValueInvalid status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["served"] = json!(false);
        },
        &[],
    );
    check_with(
        |o| {
            o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]);
        },
        &[
            r#"FieldValueInvalid spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as storage version"#,
            r#"FieldValueInvalid status.storedVersions: Invalid value: ["v1"]: must have the storage version v2"#,
        ],
    );
}

#[test]
fn versions_have_names_and_schemas() {
    check_with(
        |o| {
            o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]);
        },
        &[r#"FieldValueInvalid spec.versions: Invalid value: ["v1","v1"]: must contain unique version names"#],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["name"] = json!("V_1");
            o["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!(null);
        },
        &[
            r#"FieldValueInvalid spec.versions[0].name: Invalid value: "V_1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            r#"FieldValueInvalid spec.version: Invalid value: "V_1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["name"] = json!("");
            o["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!(null);
        },
        &[
            r#"FieldValueInvalid spec.versions[0].name: Invalid value: "": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["schema"] = json!(null);
        },
        &["FieldValueRequired spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!(null);
        },
        &["FieldValueRequired spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    check_with(
        |o| {
            o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "string"}}}]);
        },
        &[
            r#"FieldValueInvalid spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root"#,
        ],
    );
}

#[test]
fn all_errors_are_reported_together() {
    check_with(
        |o| {
            o["spec"]["group"] = json!("");
            o["spec"]["scope"] = json!("");
            o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]);
        },
        &[
            r#"FieldValueInvalid metadata.name: Invalid value: "things.def.crdtest.example.com": must be spec.names.plural+"."+spec.group"#,
            "FieldValueRequired spec.group: Required value",
            "FieldValueRequired spec.scope: Required value",
            r#"FieldValueInvalid spec.versions: Invalid value: ["v1","v1"]: must contain unique version names"#,
            r#"FieldValueInvalid spec.versions: Invalid value: ["v1","v1"]: must have exactly one version marked as storage version"#,
            "FieldValueInvalid status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
}

#[test]
fn only_deprecated_versions_have_a_warning() {
    check_with(
        |o| {
            o["spec"]["versions"][0]["deprecationWarning"] = json!("x");
        },
        &[
            r#"FieldValueInvalid spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["deprecated"] = json!(true);
            o["spec"]["versions"][0]["deprecationWarning"] = json!("");
        },
        &[r#"FieldValueInvalid spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string"#],
    );
}

#[test]
fn conversion_has_a_strategy_and_what_it_needs() {
    check_with(
        |o| {
            o["spec"]["preserveUnknownFields"] = json!(true);
        },
        &[
            "FieldValueInvalid spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ],
    );
    check_with(
        |o| {
            o["spec"]["conversion"] = json!({"strategy": "Foo"});
        },
        &[
            r#"FieldValueNotSupported spec.conversion.strategy: Unsupported value: "Foo": supported values: "None", "Webhook""#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["conversion"] = json!({"strategy": "Webhook"});
        },
        &[
            "FieldValueRequired spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "FieldValueRequired spec.conversion.conversionReviewVersions: Required value",
        ],
    );
    check_with(
        |o| {
            o["spec"]["conversion"] = json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}});
        },
        &[
            "FieldValueForbidden spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ],
    );
    check_with(
        |o| {
            o["spec"]["conversion"] = json!({});
        },
        &["FieldValueRequired spec.conversion.strategy: Required value"],
    );
    check_with(
        |o| {
            o["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"namespace": "a", "name": "b"}}, "conversionReviewVersions": ["v1"]}});
        },
        &[],
    );
}

#[test]
fn paths_of_scale_are_below_spec_and_status() {
    check_with(
        |o| {
            o["spec"]["versions"][0]["subresources"] =
                json!({"scale": {"specReplicasPath": "spec.replicas", "statusReplicasPath": ".foo"}});
        },
        &[
            r#"FieldValueInvalid spec.subresources.scale.specReplicasPath: Invalid value: "spec.replicas": must be a simple json path starting with ."#,
            r#"FieldValueInvalid spec.subresources.scale.statusReplicasPath: Invalid value: ".foo": should be a json path under .status"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["subresources"] = json!({"scale": {}});
        },
        &[
            "FieldValueRequired spec.subresources.scale.specReplicasPath: Required value",
            "FieldValueRequired spec.subresources.scale.statusReplicasPath: Required value",
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".foo"}, "status": {}});
        },
        &[
            r#"FieldValueInvalid spec.subresources.scale.labelSelectorPath: Invalid value: ".foo": should be a json path under either .spec or .status"#,
        ],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.replicas[0]", "statusReplicasPath": ".status.replicas.", "labelSelectorPath": "x"}, "status": {}});
        },
        &[
            r#"FieldValueInvalid spec.subresources.scale.labelSelectorPath: Invalid value: "x": must be a simple json path starting with ."#,
        ],
    );
}
