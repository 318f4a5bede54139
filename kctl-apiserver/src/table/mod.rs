//! Tables: the `Table` of `meta.k8s.io/v1` that kubectl asks for, with rows of cells instead of objects.
//!
//! The columns of the built-in kinds are in `data/columns.json`, recorded from kube-apiserver; the cells of each API
//! group have a file here.

mod age;
mod autoscaling;
mod core;
mod custom;
mod fields;
mod jsonpath;
mod labels;
mod network;
mod partial;
mod pod;
mod policy;
mod scale;
mod storage;
mod workload;

use std::{collections::HashMap, sync::LazyLock};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::{
    partial::{partial, partial_list},
    scale::scale_table,
};

/// The part of each object that a row includes (query parameter `includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// No part of the object, only the cells.
    None,
    /// A `PartialObjectMetadata`; the default.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

type Printer = fn(&Value, Timestamp) -> Vec<Value>;

#[derive(Deserialize)]
struct Entry {
    group: String,
    kind: String,
    columns: Value,
}

static COLUMNS: LazyLock<HashMap<(String, String), Value>> = LazyLock::new(|| {
    let entries: Vec<Entry> =
        serde_json::from_str(include_str!("../../data/columns.json")).expect("the file is generated and tested");
    entries.into_iter().map(|entry| ((entry.group, entry.kind), entry.columns)).collect()
});

/// Returns objects of a built-in kind as a table. `group` is empty for the core group; `list_meta` is the metadata of
/// the table: `resourceVersion` and `continue`.
///
/// Rows are in the order of the objects; `FlowSchema` objects are sorted by matching precedence. A kind without printer
/// columns has the columns name and creation time.
///
/// Upstream: `pkg/printers/internalversion/printers.go`.
pub fn table(group: &str, kind: &str, objects: &[Value], now: Timestamp, include: Include, list_meta: Value) -> Value {
    let own_printer = printer(group, kind);
    let printer = own_printer.unwrap_or(created_at);
    let columns = COLUMNS.get(&(group.to_owned(), kind.to_owned())).unwrap_or(default_columns());
    let mut ordered: Vec<_> = objects.iter().collect();
    if kind == "FlowSchema" {
        ordered.sort_by_key(|object| (fields::int(object, "/spec/matchingPrecedence"), fields::name(object)));
    }
    let row = |object: &Value| {
        let mut row = row(printer(object, now), object, include);
        if let (("", "Pod"), Some(conditions)) = ((group, kind), pod::row_conditions(object)) {
            row["conditions"] = conditions;
        }
        row
    };
    let mut table = assemble(columns.clone(), ordered.into_iter().map(row).collect(), list_meta);
    // Go's default printer starts from nothing.
    if own_printer.is_none() && objects.is_empty() {
        table["rows"] = Value::Null;
    }
    table
}

/// Returns objects of a custom resource as a table. `columns` are the `additionalPrinterColumns` of the version; without
/// any, the table has the column `Age`. The first column with an invalid JSON path and
/// all columns after it are left out, as in kube-apiserver.
pub fn custom_table(columns: &[Value], objects: &[Value], now: Timestamp, include: Include, list_meta: Value) -> Value {
    let age = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": default_columns()[1]["description"],
    })];
    let columns = custom::columns(if columns.is_empty() { &age } else { columns });
    let name = default_columns()[0].clone();
    let definitions = std::iter::once(name).chain(columns.iter().map(|column| column.definition.clone())).collect();
    let mut left = CELLS_LEN_MAX;
    let mut cells = |object: &Value| {
        let cells = columns.iter().map(|column| within(&mut left, column.cell(object, now)));
        std::iter::once(json!(fields::name(object))).chain(cells).collect()
    };
    let rows = objects.iter().map(|object| row(cells(object), object, include)).collect();
    assemble(definitions, rows, list_meta)
}

/// Bytes of text in all cells of a table of custom objects: hundreds of columns may each show the whole of each object.
const CELLS_LEN_MAX: usize = 64 << 20;
/// A cell for which there is no room left.
const TOO_LARGE: &str = "<too large>";

/// Returns a cell while there is room for it.
fn within(left: &mut usize, cell: Value) -> Value {
    match left.checked_sub(cell.as_str().map_or(1, str::len)) {
        Some(rest) => {
            *left = rest;
            cell
        }
        None => TOO_LARGE.into(),
    }
}

fn assemble(definitions: Value, rows: Vec<Value>, list_meta: Value) -> Value {
    fields::object([
        ("kind", json!("Table")),
        ("apiVersion", json!("meta.k8s.io/v1")),
        ("metadata", list_meta),
        ("columnDefinitions", definitions),
        ("rows", Value::Array(rows)),
    ])
}

fn row(cells: Vec<Value>, object: &Value, include: Include) -> Value {
    let included = match include {
        Include::None => Value::Null,
        Include::Metadata => partial(object),
        Include::Object => object.clone(),
    };
    fields::object([("cells", Value::Array(cells)), ("object", included)])
}

/// The columns of a kind that has no printer, by the example of one.
fn default_columns() -> &'static Value {
    static NO_COLUMNS: Value = Value::Null;
    COLUMNS.get(&(String::new(), "LimitRange".to_owned())).unwrap_or(&NO_COLUMNS)
}

fn created_at(object: &Value, _now: Timestamp) -> Vec<Value> {
    let created = fields::text_or(object, "/metadata/creationTimestamp", "0001-01-01T00:00:00Z");
    vec![json!(fields::name(object)), json!(created)]
}

fn printer(group: &str, kind: &str) -> Option<Printer> {
    Some(match (group, kind) {
        ("", kind) => core_printer(kind)?,
        ("events.k8s.io", "Event") => core::event,
        ("apps", "Deployment") => workload::deployment,
        ("apps", "ReplicaSet") => workload::replica_set,
        ("apps", "StatefulSet") => workload::stateful_set,
        ("apps", "DaemonSet") => workload::daemon_set,
        ("apps", "ControllerRevision") => workload::controller_revision,
        ("batch", "Job") => workload::job,
        ("batch", "CronJob") => workload::cron_job,
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::horizontal_pod_autoscaler,
        ("policy", "PodDisruptionBudget") => autoscaling::pod_disruption_budget,
        ("networking.k8s.io", "Ingress") => network::ingress,
        ("networking.k8s.io", "IngressClass") => network::ingress_class,
        ("networking.k8s.io", "NetworkPolicy") => network::network_policy,
        ("networking.k8s.io", "IPAddress") => network::ip_address,
        ("networking.k8s.io", "ServiceCIDR") => network::service_cidr,
        ("discovery.k8s.io", "EndpointSlice") => network::endpoint_slice,
        ("storage.k8s.io", "StorageClass") => storage::storage_class,
        ("storage.k8s.io", "CSIDriver") => storage::csi_driver,
        ("storage.k8s.io", "CSINode") => storage::csi_node,
        ("storage.k8s.io", "VolumeAttachment") => storage::volume_attachment,
        ("storage.k8s.io", "VolumeAttributesClass") => storage::volume_attributes_class,
        _ => policy_printer(group, kind)?,
    })
}

fn core_printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Pod" => pod::pod,
        "PodTemplate" => core::pod_template,
        "ReplicationController" => workload::replication_controller,
        "Service" => network::service,
        "Endpoints" => core::endpoints,
        "ConfigMap" => core::config_map,
        "Secret" => core::secret,
        "ServiceAccount" => core::name_and_age,
        "Namespace" => core::namespace,
        "Node" => core::node,
        "Event" => core::event,
        "ResourceQuota" => core::resource_quota,
        "ComponentStatus" => core::component_status,
        "PersistentVolume" => storage::persistent_volume,
        "PersistentVolumeClaim" => storage::persistent_volume_claim,
        _ => return None,
    })
}

fn policy_printer(group: &str, kind: &str) -> Option<Printer> {
    Some(match (group, kind) {
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => policy::role_binding,
        ("admissionregistration.k8s.io", kind) => match kind {
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => policy::webhooks,
            "ValidatingAdmissionPolicy" => policy::validating_policy,
            "MutatingAdmissionPolicy" => policy::mutating_policy,
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => policy::policy_binding,
            _ => return None,
        },
        ("certificates.k8s.io", "CertificateSigningRequest") => policy::certificate_signing_request,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => policy::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => policy::priority_level,
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class,
        ("coordination.k8s.io", "Lease") => policy::lease,
        ("node.k8s.io", "RuntimeClass") => policy::runtime_class,
        ("resource.k8s.io", "ResourceClaim") => policy::resource_claim,
        ("resource.k8s.io", "ResourceSlice") => policy::resource_slice,
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => core::name_and_age,
        ("apiregistration.k8s.io", "APIService") => policy::api_service,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
