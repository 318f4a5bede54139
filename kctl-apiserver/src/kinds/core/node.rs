//! `Node` of the core group: a machine that runs Pods.
//!
//! The server keeps the status as the kubelet sends it, and taints new nodes as not ready. It aligns `podCIDR` with
//! `podCIDRs`, and defaults `status.allocatable` to the capacity. `kubectl get nodes` shows the condition `Ready`,
//! `SchedulingDisabled` for a cordoned node, and the roles by labels.
//!
//! Upstream: `pkg/registry/core/node/strategy.go` and `pkg/apis/core/validation/validation.go`.

mod validation;

use serde_json::{Value, json};

use crate::{
    defaulting::{add, part},
    json_path::{remove, set},
    registry::kind::{
        Cell, ConnectTarget, Defaults, Environment, Kind, ManagedFields, NewStatus, Plugin, Requests, Strategy,
        Subresource, TableColumns, Validation,
    },
    table::{
        age::UNKNOWN,
        fields::{condition, flag, list, text, text_or, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "nodes",
    kind: "Node",
    requests: Requests {
        selectable_fields: &["spec.unschedulable"],
        selected_value: |node, path| {
            (path == "spec.unschedulable")
                .then(|| node["spec"]["unschedulable"].as_bool().unwrap_or_default().to_string())
        },
        connects: &[Subresource::Proxy],
        connect_target: ConnectTarget::Kubelet,
        ..Requests::DEFAULT
    },
    admission: &[Plugin::TaintNodesByCondition],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy {
        new_status: NewStatus::AsSent,
        prepare_create: drop_configuration,
        prepare_status,
        prepare_update,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate: validation::validate,
        validate_create: validation::validate_create,
        validate_update: validation::validate_update,
        validate_status: |_, new, errors| validation::validate_status(new, errors),
        warn,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        filled_in: &["/spec"],
        complete_sent: Some(complete_sent),
        ..ManagedFields::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Computed(|node, _| status(node).into()),
        Cell::Computed(|node, _| roles(node).into()),
        Cell::Age,
        Cell::Text("/status/nodeInfo/kubeletVersion"),
        Cell::Computed(|node, _| address(node, "InternalIP").into()),
        Cell::Computed(|node, _| address(node, "ExternalIP").into()),
        Cell::TextOr("/status/nodeInfo/osImage", UNKNOWN),
        Cell::Computed(|node, _| kernel(node).into()),
        Cell::TextOr("/status/nodeInfo/containerRuntimeVersion", UNKNOWN),
    ]),
    ..Kind::DEFAULT
};

/// Drops `spec.configSource`: kubelets are no longer configured by objects. Upstream: `nodeStrategy.PrepareForCreate`
/// and `dropDisabledFields` in `pkg/registry/core/node/strategy.go`.
fn drop_configuration(_: &mut dyn Environment, object: &mut Value) {
    set(&mut object["spec"], "configSource", None);
}

/// Drops `spec.configSource`, unless the stored node already has it.
fn prepare_update(_: Subresource, old: &Value, new: &mut Value) {
    if old["spec"]["configSource"].is_null() {
        remove(new, "spec", "configSource");
    }
}

/// Drops `status.config`, unless the stored node already has it.
fn prepare_status(old: &Value, new: &mut Value) {
    if old["status"]["config"].is_null() {
        remove(new, "status", "config");
    }
}

/// Aligns `podCIDR` and `podCIDRs`, which hold the same ranges. The field manager that sent one of the fields owns
/// both.
fn complete_sent(sent: &mut Value) {
    node_ranges(&mut sent["spec"]);
}

/// Warns about `spec.externalID`, which is deprecated and has no effect. Cloud providers set `spec.providerID` instead.
fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if object["spec"]["externalID"].as_str().is_some_and(|id| !id.is_empty()) {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
}

/// Prefix of the labels that give a node a role. The role is the rest of the key, as in
/// `node-role.kubernetes.io/control-plane`.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

/// Returns the status by the condition `Ready`, followed by `,SchedulingDisabled` for a cordoned node.
fn status(node: &Value) -> String {
    let status = match condition(node, "Ready").map(|ready| text(ready, "/status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    format!("{status}{}", if flag(node, "/spec/unschedulable") { ",SchedulingDisabled" } else { "" })
}

/// Returns the version of the kernel with the architecture, as in `6.1.0 (arm64)`.
fn kernel(node: &Value) -> String {
    let version = text_or(node, "/status/nodeInfo/kernelVersion", UNKNOWN);
    match text(node, "/status/nodeInfo/architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

/// Returns the roles that labels name, sorted and without duplicates; `<none>` without one.
fn roles(object: &Value) -> String {
    let labels = value_at(object, "/metadata/labels").as_object().into_iter().flatten();
    let mut roles: Vec<_> = labels
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix(ROLE_PREFIX),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

/// Returns the first address of a type such as `InternalIP`; `<none>` without one.
pub(crate) fn address<'a>(object: &'a Value, kind: &str) -> &'a str {
    let address = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
    address.map_or(NONE, |address| text(address, "/address"))
}

/// Sets `podCIDR` and `podCIDRs[0]` to the same range. If they differ, `podCIDR` takes precedence.
fn node_ranges(spec: &mut Value) {
    let range = spec.get("podCIDR").filter(|range| range.as_str().is_some_and(|range| !range.is_empty())).cloned();
    match (range, spec.pointer("/podCIDRs/0").cloned()) {
        (Some(range), first) if first.as_ref() != Some(&range) => spec["podCIDRs"] = json!([range]),
        (None, Some(first)) => spec["podCIDR"] = first,
        _ => {}
    }
}

/// Fills in the defaults of a Node (`SetDefaults_NodeStatus` in `pkg/apis/core/v1/defaults.go`).
///
/// `allocatable` defaults to the capacity, for a kubelet that reserves nothing.
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    node_ranges(spec);
    let status = part(object, "status");
    if let Some(capacity) = status.get("capacity").cloned() {
        add(status, "allocatable", capacity);
    }
}
