//! Names, versions, conversion and subresources of CRDs.

use serde_json::json;

use super::check_with;

#[test]
fn crd_names_are_validated_and_match_metadata_name() {
    check_with(|o| o["metadata"]["name"] = json!("foo.example.com"), &["Invalid metadata.name"]);
    check_with(
        |o| o["spec"]["names"]["kind"] = json!(""),
        &["Required spec.names.singular", "Required spec.names.kind", "Required spec.names.listKind"],
    );
    check_with(|o| o["spec"]["names"]["plural"] = json!(""), &["Invalid metadata.name", "Required spec.names.plural"]);
    check_with(
        |o| {
            o["metadata"]["name"] = json!("Things.def.crdtest.example.com");
            o["spec"]["names"]["plural"] = json!("Things");
        },
        &["Invalid metadata.name", "Invalid spec.names.plural"],
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
            "Invalid spec.names.singular",
            "Invalid spec.names.kind",
            "Invalid spec.names.listKind",
            "Invalid spec.names.shortNames[0]",
            "Invalid spec.names.categories[0]",
        ],
    );
    check_with(|o| o["spec"]["names"]["listKind"] = json!("Thing"), &["Invalid spec.names.listKind"]);
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
    check_with(|o| o["spec"]["group"] = json!(""), &["Invalid metadata.name", "Required spec.group"]);
    check_with(|o| o["spec"]["group"] = json!("Foo_"), &["Invalid metadata.name", "Invalid spec.group"]);
    check_with(
        |o| {
            o["metadata"]["name"] = json!("things.foo");
            o["spec"]["group"] = json!("foo");
        },
        &["Invalid spec.group"],
    );
    check_with(
        |o| {
            o["metadata"]["name"] = json!("things.foo.k8s.io");
            o["spec"]["group"] = json!("foo.k8s.io");
        },
        &["Required metadata.annotations[api-approved.kubernetes.io]"],
    );
    check_with(
        |o| {
            o["metadata"]["name"] = json!("things.foo.k8s.io");
            o["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "x"});
            o["spec"]["group"] = json!("foo.k8s.io");
        },
        &["Invalid metadata.annotations[api-approved.kubernetes.io]"],
    );
}

#[test]
fn scope_is_one_of_two() {
    check_with(|o| o["spec"]["scope"] = json!("Foo"), &["NotSupported spec.scope"]);
    check_with(|o| o["spec"]["scope"] = json!(""), &["Required spec.scope"]);
    check_with(|o| o["spec"]["scope"] = json!(null), &["Required spec.scope"]);
}

#[test]
fn exactly_one_version_is_stored() {
    check_with(|o| o["spec"]["versions"] = json!([]), &["Invalid spec.versions", "Invalid status.storedVersions"]);
    check_with(|o| o["spec"]["versions"] = json!(null), &["Invalid spec.versions", "Invalid status.storedVersions"]);
    check_with(
        |o| o["spec"]["versions"][0]["storage"] = json!(false),
        &["Invalid spec.versions", "Invalid status.storedVersions"],
    );
    check_with(|o| o["spec"]["versions"][0]["served"] = json!(false), &[]);
    check_with(
        |o| o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]),
        &["Invalid spec.versions", "Invalid status.storedVersions"],
    );
}

#[test]
fn versions_have_names_and_schemas() {
    check_with(
        |o| o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]),
        &["Invalid spec.versions"],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["name"] = json!("V_1");
            o["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!(null);
        },
        &["Invalid spec.versions[0].name", "Invalid spec.version"],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["name"] = json!("");
            o["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!(null);
        },
        &["Invalid spec.versions[0].name"],
    );
    check_with(
        |o| o["spec"]["versions"][0]["schema"] = json!(null),
        &["Required spec.versions[0].schema.openAPIV3Schema"],
    );
    check_with(
        |o| o["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!(null),
        &["Required spec.versions[0].schema.openAPIV3Schema"],
    );
    check_with(
        |o| o["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "string"}}}]),
        &["Invalid spec.versions[1].schema.openAPIV3Schema.type"],
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
    check_with(
        |o| o["spec"]["versions"][0]["deprecationWarning"] = json!("x"),
        &["Invalid spec.versions[0].deprecationWarning"],
    );
    check_with(
        |o| {
            o["spec"]["versions"][0]["deprecated"] = json!(true);
            o["spec"]["versions"][0]["deprecationWarning"] = json!("");
        },
        &["Invalid spec.versions[0].deprecationWarning"],
    );
}

#[test]
fn conversion_has_a_strategy_and_what_it_needs() {
    check_with(|o| o["spec"]["preserveUnknownFields"] = json!(true), &["Invalid spec.preserveUnknownFields"]);
    check_with(|o| o["spec"]["conversion"] = json!({"strategy": "Foo"}), &["NotSupported spec.conversion.strategy"]);
    check_with(
        |o| o["spec"]["conversion"] = json!({"strategy": "Webhook"}),
        &["Required spec.conversion.webhookClientConfig", "Required spec.conversion.conversionReviewVersions"],
    );
    check_with(
        |o| o["spec"]["conversion"] = json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        &["Forbidden spec.conversion.conversionReviewVersions"],
    );
    check_with(|o| o["spec"]["conversion"] = json!({}), &["Required spec.conversion.strategy"]);
    check_with(
        |o| o["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"namespace": "a", "name": "b"}}, "conversionReviewVersions": ["v1"]}}),
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
        &["Invalid spec.subresources.scale.specReplicasPath", "Invalid spec.subresources.scale.statusReplicasPath"],
    );
    check_with(
        |o| o["spec"]["versions"][0]["subresources"] = json!({"scale": {}}),
        &["Required spec.subresources.scale.specReplicasPath", "Required spec.subresources.scale.statusReplicasPath"],
    );
    check_with(
        |o| o["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".foo"}, "status": {}}),
        &["Invalid spec.subresources.scale.labelSelectorPath"],
    );
    check_with(
        |o| o["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.replicas[0]", "statusReplicasPath": ".status.replicas.", "labelSelectorPath": "x"}, "status": {}}),
        &["Invalid spec.subresources.scale.labelSelectorPath"],
    );
}
