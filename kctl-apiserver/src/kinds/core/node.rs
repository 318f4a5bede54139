//! `Node` of the core group.

use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules},
    field_errors::Errors,
    json_path::{remove, set},
    registry::kind::{Environment, Kind, NewStatus},
    selector, table,
};

pub(crate) static KIND: Kind = Kind {
    resource: "nodes",
    kind: "Node",
    selectable_fields: selector::OF_NODES,
    storage_key: Some("minions"),
    connects: &["proxy"],
    new_status: NewStatus::AsSent,
    prepare_create: drop_configuration,
    complete_by_plugins: taint,
    prepare_update,
    prepare_status,
    default: defaults::api::node,
    filled_in: &["/spec"],
    complete_sent: Some(complete_sent),
    validate: |object, errors| rules::node::node(object, false, errors),
    validate_create: Some(|object, errors| rules::node::node(object, true, errors)),
    validate_update,
    validate_status: |_, new, errors| rules::node::status(new, errors),
    warn,
    printer: Some(table::core::node),
    ..Kind::DEFAULT
};

/// Drops `spec.configSource`: kubelets are no longer configured by objects.
fn drop_configuration(_: &mut dyn Environment, object: &mut Value) {
    set(&mut object["spec"], "configSource", None);
}

/// Taints a new node until its kubelet has reported (`TaintNodesByCondition`).
fn taint(object: &mut Value) {
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    match &mut object["spec"]["taints"] {
        Value::Array(list) if list.iter().any(|one| one["key"] == taint["key"] && one["effect"] == taint["effect"]) => {
        }
        Value::Array(list) => list.push(taint),
        none => *none = json!([taint]),
    }
}

fn prepare_update(_: &str, old: &Value, new: &mut Value) {
    if old["spec"]["configSource"].is_null() {
        remove(new, "spec", "configSource");
    }
}

fn prepare_status(old: &Value, new: &mut Value) {
    if old["status"]["config"].is_null() {
        remove(new, "status", "config");
    }
}

/// The two fields with the ranges of a node's pods say the same.
fn complete_sent(sent: &mut Value) {
    defaults::node_ranges(&mut sent["spec"]);
}

/// Validates a changed node as kube-apiserver does: as a new one, and then once more.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    rules::node::swap(&new["status"]["nodeInfo"]["swap"]["capacity"], errors);
    rules::node::ranges(&new["spec"]["podCIDRs"], errors);
    rules::node::status(new, errors);
    rules::node::kept(old, new, errors);
}

fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if object["spec"]["externalID"].as_str().is_some_and(|id| !id.is_empty()) {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
}
