//! Rows of roles, policies and other configuration, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn a_budget_shows_its_bounds() {
    check(
        ("policy", "PodDisruptionBudget"),
        &json!(
            {"metadata": {"name": "pdb1"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": 1}}
        ),
        &json!(["pdb1", "2", "N/A", 1, "59s"]),
    );
    check(
        ("policy", "PodDisruptionBudget"),
        &json!(
            {"metadata": {"name": "pdb2"}, "spec": {"selector": {"matchLabels": {"app": "x"}},
            "maxUnavailable": "30%"}, "status": {"disruptionsAllowed": 0}}
        ),
        &json!(["pdb2", "N/A", "30%", 0, "59s"]),
    );
    check(
        ("policy", "PodDisruptionBudget"),
        &json!(
            {"metadata": {"name": "pdb3"}, "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": 0}}
        ),
        &json!(["pdb3", "N/A", "N/A", 0, "59s"]),
    );
}

#[test]
fn a_role_has_no_columns() {
    check(
        ("rbac.authorization.k8s.io", "Role"),
        &json!({"metadata": {"name": "ro1"}, "rules": null}),
        &json!(["ro1", "2026-11-21T06:15:47Z"]),
    );
}

#[test]
fn a_cluster_role_has_no_columns() {
    check(
        ("rbac.authorization.k8s.io", "ClusterRole"),
        &json!({"metadata": {"name": "table-cr"}, "rules": null}),
        &json!(["table-cr", "2026-11-21T06:15:47Z"]),
    );
}

#[test]
fn a_lease_shows_its_holder() {
    check(("coordination.k8s.io", "Lease"), &json!({"metadata": {"name": "l1"}}), &json!(["l1", "", "59s"]));
    check(
        ("coordination.k8s.io", "Lease"),
        &json!({"metadata": {"name": "l2"}, "spec": {"holderIdentity": "me"}}),
        &json!(["l2", "me", "59s"]),
    );
}

#[test]
fn mutating_webhooks_are_counted() {
    check(
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        &json!(
            {"metadata": {"name": "table-mw"}, "webhooks": [{"name": "a.b.c", "rules": [{"operations": ["CREATE"],
            "apiGroups": ["none.x"], "apiVersions": ["v1"], "resources": ["none"], "scope": "*"}]}]}
        ),
        &json!(["table-mw", 1, "59s"]),
    );
}

#[test]
fn validating_webhooks_are_counted() {
    check(
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        &json!(
            {"metadata": {"name": "table-vw"}, "webhooks": [{"name": "a.b.c", "rules": [{"operations": ["CREATE"],
            "apiGroups": ["none.x"], "apiVersions": ["v1"], "resources": ["none"], "scope": "*"}]}]}
        ),
        &json!(["table-vw", 1, "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        &json!({"metadata": {"name": "table-vw0"}}),
        &json!(["table-vw0", 0, "59s"]),
    );
}

#[test]
fn validations_are_counted() {
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        &json!({"metadata": {"name": "table-vap"}, "spec": {"validations": [{}]}}),
        &json!(["table-vap", 1, "<unset>", "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        &json!(
            {"metadata": {"name": "table-vap2"}, "spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{}]}}
        ),
        &json!(["table-vap2", 1, "v1/ConfigMap", "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        &json!(
            {"metadata": {"name": "table-vap3"}, "spec": {"paramKind": {"apiVersion": "g.x/v1", "kind": "Foo"},
            "validations": [{}]}}
        ),
        &json!(["table-vap3", 1, "g.x/v1/Foo", "59s"]),
    );
}

#[test]
fn a_validating_binding_shows_its_parameter_or_selector() {
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        &json!({"metadata": {"name": "table-vapb"}, "spec": {"policyName": "table-vap"}}),
        &json!(["table-vapb", "table-vap", "<unset>", "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        &json!(
            {"metadata": {"name": "table-vapb2"}, "spec": {"policyName": "table-vap2", "paramRef": {"name": "n",
            "namespace": "table"}}}
        ),
        &json!(["table-vapb2", "table-vap2", "table/n", "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        &json!(
            {"metadata": {"name": "table-vapb3"}, "spec": {"policyName": "table-vap2",
            "paramRef": {"selector": {"matchLabels": {"app": "x"}}}}}
        ),
        &json!([
            "table-vapb3",
            "table-vap2",
            "&LabelSelector{MatchLabels:map[string]string{app: x,},MatchExpressions:[]LabelSelectorRequirement{},}",
            "59s"
        ]),
    );
    check(
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        &json!(
            {"metadata": {"name": "table-vapb4"}, "spec": {"policyName": "table-vap2", "paramRef": {"name": "n"}}}
        ),
        &json!(["table-vapb4", "table-vap2", "*/n", "59s"]),
    );
}

#[test]
fn mutations_are_counted() {
    check(
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        &json!({"metadata": {"name": "table-map"}, "spec": {"mutations": [{"patchType": "ApplyConfiguration"}]}}),
        &json!(["table-map", 1, "<unset>", "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        &json!(
            {"metadata": {"name": "table-map2"}, "spec": {"paramKind": {"apiVersion": "g.x/v1", "kind": "Foo"},
            "mutations": [{"patchType": "ApplyConfiguration"}]}}
        ),
        &json!(["table-map2", 1, "g.x/v1/Foo", "59s"]),
    );
}

#[test]
fn a_mutating_binding_shows_its_parameter() {
    check(
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        &json!({"metadata": {"name": "table-mapb"}, "spec": {"policyName": "table-map"}}),
        &json!(["table-mapb", "table-map", "<unset>", "59s"]),
    );
    check(
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        &json!(
            {"metadata": {"name": "table-mapb2"}, "spec": {"policyName": "table-map2", "paramRef": {"name": "n",
            "namespace": "table"}}}
        ),
        &json!(["table-mapb2", "table-map2", "table/n", "59s"]),
    );
}

#[test]
fn a_runtime_class_shows_its_handler() {
    check(
        ("node.k8s.io", "RuntimeClass"),
        &json!({"metadata": {"name": "table-rc"}, "handler": "h"}),
        &json!(["table-rc", "h", "59s"]),
    );
}

#[test]
fn flow_schema_without_a_condition_shows_question_mark() {
    check(
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        &json!(
            {"metadata": {"name": "table-fs2"}, "spec": {"priorityLevelConfiguration": {"name": "exempt"},
            "matchingPrecedence": 1000, "distinguisherMethod": {"type": "ByUser"}},
            "status": {"conditions": [{"type": "Dangling", "status": "False"}]}}
        ),
        &json!(["table-fs2", "exempt", 1000, "ByUser", "59s", "False"]),
    );
    check(
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        &json!(
            {"metadata": {"name": "table-fs"}, "spec": {"priorityLevelConfiguration": {"name": "nope"},
            "matchingPrecedence": 9000}}
        ),
        &json!(["table-fs", "nope", 9000, "<none>", "59s", "?"]),
    );
}

#[test]
fn a_priority_level_shows_its_limits() {
    check(
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        &json!(
            {"metadata": {"name": "table-plc"}, "spec": {"type": "Limited",
            "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}}
        ),
        &json!(["table-plc", "Limited", 1, "<none>", "<none>", "<none>", "59s"]),
    );
    check(
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        &json!(
            {"metadata": {"name": "table-plc2"}, "spec": {"type": "Limited",
            "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": {"queues": 8,
            "handSize": 2, "queueLengthLimit": 3}}}}}
        ),
        &json!(["table-plc2", "Limited", 1, 8, 2, 3, "59s"]),
    );
}

#[test]
fn api_service_shows_why_it_is_not_available() {
    check(
        ("apiregistration.k8s.io", "APIService"),
        &json!(
            {"metadata": {"name": "v1.apps"}, "spec": {"group": "apps", "version": "v1"},
            "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available"}]}}
        ),
        &json!(["v1.apps", "Local", "True", "59s"]),
    );
    check(
        ("apiregistration.k8s.io", "APIService"),
        &json!(
            {"metadata": {"name": "v1.table.example"}, "spec": {"service": {"namespace": "table", "name": "s",
            "port": 443}, "group": "table.example", "version": "v1"},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound",
            "message": "service/s in \"table\" is not present"}]}}
        ),
        &json!(["v1.table.example", "table/s", "False (ServiceNotFound)", "59s"]),
    );
}

#[test]
fn a_device_class_shows_its_age() {
    check(("resource.k8s.io", "DeviceClass"), &json!({"metadata": {"name": "table-dc"}}), &json!(["table-dc", "59s"]));
}

#[test]
fn a_resource_claim_shows_its_states() {
    check(
        ("resource.k8s.io", "ResourceClaim"),
        &json!({"metadata": {"name": "rcl1"}, "spec": {"devices": {"requests": [{"name": "r"}]}}}),
        &json!(["rcl1", "pending", "59s"]),
    );
    check(
        ("resource.k8s.io", "ResourceClaim"),
        &json!(
            {"metadata": {"name": "rcl2"}, "spec": {"devices": {"requests": [{"name": "r"}]}},
            "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d.x", "pool": "p",
            "device": "v"}]}}}}
        ),
        &json!(["rcl2", "allocated", "59s"]),
    );
    check(
        ("resource.k8s.io", "ResourceClaim"),
        &json!(
            {"metadata": {"name": "rcl4", "deletionTimestamp": "2026-11-21T06:15:47Z"},
            "spec": {"devices": {"requests": [{"name": "r"}]}},
            "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d.x", "pool": "p",
            "device": "v"}]}}}}
        ),
        &json!(["rcl4", "deleted,allocated", "59s"]),
    );
    check(
        ("resource.k8s.io", "ResourceClaim"),
        &json!(
            {"metadata": {"name": "rcl5"}, "spec": {"devices": {"requests": [{"name": "r"}]}},
            "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d.x", "pool": "p",
            "device": "v"}]}}, "reservedFor": [{"resource": "pods", "name": "p"}]}}
        ),
        &json!(["rcl5", "allocated,reserved", "59s"]),
    );
}

#[test]
fn a_resource_slice_shows_its_pool() {
    check(
        ("resource.k8s.io", "ResourceSlice"),
        &json!({"metadata": {"name": "table-rs"}, "spec": {"driver": "d.x", "pool": {"name": "p"}, "nodeName": "n"}}),
        &json!(["table-rs", "n", "d.x", "p", "59s"]),
    );
    check(
        ("resource.k8s.io", "ResourceSlice"),
        &json!(
            {"metadata": {"name": "table-rs2"}, "spec": {"driver": "d.x", "pool": {"name": "p"}, "allNodes": true}}
        ),
        &json!(["table-rs2", "", "d.x", "p", "59s"]),
    );
}

#[test]
fn definition_of_a_custom_kind_shows_served_versions() {
    let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
    check(
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        &json!({
            "metadata": {"name": "foos.table.io"},
            "spec": {
                "group": "table.io",
                "scope": "Namespaced",
                "names": {"kind": "Foo", "shortNames": ["f", "fo"]},
                "versions": [version("v2", true, true), version("v1", true, false), version("v0", false, false)],
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        }),
        &json!([
            "foos.table.io",
            "Namespaced",
            "v1,v2(storage)",
            "2026-11-21T06:15:47Z",
            "table.io",
            "Foo",
            "f,fo",
            true
        ]),
    );
}
