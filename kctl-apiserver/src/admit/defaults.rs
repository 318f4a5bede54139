//! Defaults of the built-in kinds: takes an object as a client sent it, and completes it as kube-apiserver stores it.
//!
//! Behaviour: the `defaults.go` of each group in `k8s.io/kubernetes/pkg/apis`, and what kube-apiserver 1.36 answered.

mod api;
mod device;
mod image;
mod pod;
mod service;
mod workload;

pub(crate) use self::{api::node_ranges, pod::quality_of_service};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{quantity, zeros};
use crate::schema::{PerPlace, Schema};

/// Fills in the defaults of a built-in kind. Objects of other kinds, such as custom resources, stay unchanged.
///
/// Nulls, zero values of non-pointer Go fields, and empty lists and maps count as absent and are removed, as
/// kube-apiserver does when it decodes an object. Quantities get their canonical form. A `Pod` also gets the
/// tolerations and the priority that the admission plugins `DefaultTolerationSeconds` and `Priority` set. The
/// function is idempotent.
///
/// Fields that depend on other objects (cluster IPs, node ports, service accounts) or on generated values (the
/// selector of a `Job`) are left to the caller. So are the finalizers of storage protection.
///
/// Parts that are equal in `stored` already have their defaults and are skipped.
pub fn default_object(api_version: &str, kind: &str, object: &mut Value, stored: Option<&Value>) {
    if (api_version, kind) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
        return without_schemas(object, |object| {
            let Some(schema) = Schema::built_in(api_version, kind) else { return };
            decode(schema, object, stored);
            zeros::add(schema, object, stored);
        });
    }
    let Some(default) = of_kind(api_version, kind) else { return };
    if !object.is_object() {
        return;
    }
    let schema = Schema::built_in(api_version, kind);
    if let Some(schema) = schema {
        decode(schema, object, stored);
    }
    if stored.is_none_or(|stored| !has_defaults_of(api_version, kind, stored, object)) {
        default(object);
        if let Some(schema) = schema {
            zeros::add(schema, object, stored);
        }
    }
}

/// Fills in what is left out where an object is read: webhooks see it before the storage and the strategy of its kind fill
/// in the rest.
pub(crate) fn default_decoded(api_version: &str, kind: &str, object: &mut Value) {
    let later: &[&str] = match (api_version, kind) {
        ("v1", "Service") => &["/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy"],
        ("v1", "Namespace") => &["/spec/finalizers"],
        ("rbac.authorization.k8s.io/v1", "Role" | "ClusterRole") => &["/rules"],
        ("apps/v1", "DaemonSet") => &[TEMPLATE_GENERATION],
        _ => &[],
    };
    let given: Vec<Option<Value>> = later.iter().map(|pointer| object.pointer(pointer).cloned()).collect();
    default_object(api_version, kind, object, None);
    for (pointer, given) in later.iter().zip(given) {
        let Some((parent, field)) = pointer.rsplit_once('/') else { continue };
        let Some(Value::Object(parent)) = object.pointer_mut(parent) else { continue };
        match given {
            Some(given) => drop(parent.insert(field.to_owned(), given)),
            // Its counter begins with nothing.
            None if *pointer == TEMPLATE_GENERATION => drop(parent.insert(field.to_owned(), "0".into())),
            None if field == "rules" => {}
            None => drop(parent.remove(field)),
        }
    }
}

/// Where a daemon set counts the changes of its template.
const TEMPLATE_GENERATION: &str = "/metadata/annotations/deprecated.daemonset.template.generation";

/// Changes a definition but for the schemas of its versions, which go through code of their own.
fn without_schemas(object: &mut Value, change: impl FnOnce(&mut Value)) {
    let versions = |object: &mut Value| -> Vec<Option<Value>> {
        let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        versions.into_iter().flatten().map(|version| version.get_mut("schema").map(Value::take)).collect()
    };
    let schemas = versions(object);
    change(object);
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for (version, schema) in versions.into_iter().flatten().zip(schemas) {
        if let (Some(version), Some(schema)) = (version.as_object_mut(), schema) {
            version.insert("schema".to_owned(), schema);
        }
    }
}

/// Kinds with defaults in their metadata.
const METADATA: [(&str, &str); 3] = [("v1", "Namespace"), ("v1", "ReplicationController"), ("apps/v1", "DaemonSet")];

/// Whether an object is the stored one but for metadata without defaults.
fn has_defaults_of(api_version: &str, kind: &str, stored: &Value, object: &Value) -> bool {
    let (Value::Object(stored), Value::Object(object)) = (stored, object) else { return false };
    let is_free = |name: &str| name == "metadata" && !METADATA.contains(&(api_version, kind));
    let is_same = |((name, was), (other, is)): ((&String, &Value), (&String, &Value))| {
        name == other && (was == is || is_free(name))
    };
    stored.len() == object.len() && stored.iter().zip(object).all(is_same)
}

fn of_kind(api_version: &str, kind: &str) -> Option<fn(&mut Value)> {
    Some(match (api_version, kind) {
        ("v1", "Pod") => pod::pod,
        ("v1", "PodTemplate") => |object| pod::template(object, "template"),
        ("v1", "ReplicationController") => workload::replication_controller,
        ("v1", "Service") => service::service,
        ("v1", "Endpoints") => service::endpoints,
        ("discovery.k8s.io/v1", "EndpointSlice") => service::endpoint_slice,
        ("networking.k8s.io/v1", "NetworkPolicy") => service::network_policy,
        ("networking.k8s.io/v1", "Ingress") => service::ingress,
        ("apps/v1", "Deployment") => workload::deployment,
        ("apps/v1", "ReplicaSet") => workload::replica_set,
        ("apps/v1", "StatefulSet") => workload::stateful_set,
        ("apps/v1", "DaemonSet") => workload::daemon_set,
        ("batch/v1", "Job") => workload::job,
        ("batch/v1", "CronJob") => workload::cron_job,
        ("autoscaling/v1", "HorizontalPodAutoscaler") => workload::first_horizontal_pod_autoscaler,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => workload::horizontal_pod_autoscaler,
        ("policy/v1", "PodDisruptionBudget") => workload::pod_disruption_budget,
        ("v1", "Namespace") => api::namespace,
        ("v1", "Node") => api::node,
        ("v1", "Secret") => api::secret,
        ("v1", "PersistentVolumeClaim") => api::persistent_volume_claim,
        ("v1", "PersistentVolume") => api::persistent_volume,
        ("v1", "LimitRange") => api::limit_range,
        ("v1", "Event") => api::event,
        ("events.k8s.io/v1", "Event") => api::new_event,
        ("v1", "ServiceAccount") => api::service_account,
        ("v1", "ResourceQuota") => |object| add(object, "status", json!({})),
        ("coordination.k8s.io/v1", "Lease") => |object| add(object, "spec", json!({})),
        ("resource.k8s.io/v1", "ResourceClaim") => device::claim,
        ("resource.k8s.io/v1", "ResourceClaimTemplate") => device::claim_template,
        ("resource.k8s.io/v1", "ResourceSlice") => device::slice,
        ("storage.k8s.io/v1", "StorageClass") => api::storage_class,
        ("storage.k8s.io/v1", "CSIDriver") => api::csi_driver,
        ("scheduling.k8s.io/v1", "PriorityClass") => |object| {
            add(object, "preemptionPolicy", "PreemptLowerPriority");
            add(object, "value", 0);
        },
        ("rbac.authorization.k8s.io/v1", "Role" | "ClusterRole") => |object| add(object, "rules", Value::Null),
        ("rbac.authorization.k8s.io/v1", "RoleBinding" | "ClusterRoleBinding") => api::role_binding,
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration") => api::validating_webhooks,
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration") => api::mutating_webhooks,
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
            api::admission_policy
        }
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding") => {
            api::admission_policy_binding
        }
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema") => {
            |object| fill(part(object, "spec"), "matchingPrecedence", api::PRECEDENCE)
        }
        ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration") => api::priority_level,
        ("apiregistration.k8s.io/v1", "APIService") => api::api_service,
        ("networking.k8s.io/v1", "IngressClass") => service::ingress_class,
        ("storage.k8s.io/v1", "CSINode") => api::csi_node,
        ("storage.k8s.io/v1", "VolumeAttachment") => |object| add(part(object, "status"), "attached", false),
        _ if Schema::built_in(api_version, kind).is_some() => |_| {},
        _ => return None,
    })
}

/// What is not in JSON when it is zero, by type.
static LEFT_OUT: LazyLock<PerPlace<Vec<&'static str>>> =
    LazyLock::new(|| PerPlace::new(|place| place.name().map(crate::proto::left_out).unwrap_or_default()));

/// A list that has a default where it is not there, and is refused where it has no items.
const REFUSED_EMPTY: (Option<&str>, &str) = (Some("io.k8s.api.autoscaling.v2.HPAScalingRules"), "policies");

/// Drops zeros that Go leaves out, nulls, lists without items and maps without entries. A null in a map of texts is the empty text. Quantities
/// get their canonical form.
fn decode(schema: Schema<'_>, value: &mut Value, stored: Option<&Value>) {
    match value {
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for (index, item) in items.iter_mut().enumerate() {
                    let stored = stored.and_then(|stored| stored.get(index));
                    if stored != Some(item) {
                        decode(schema, item, stored);
                    }
                }
            }
        }
        Value::Object(fields) => {
            let left_out = LEFT_OUT.get(&schema).map_or(&[] as &[&str], Vec::as_slice);
            fields.retain(|name, value| {
                let stored = stored.and_then(|stored| stored.get(name));
                // An empty list of managers says that fields are no longer tracked.
                if name == "managedFields" || (stored == Some(value) && !value.is_null()) {
                    return true;
                }
                let is_zero = *value == false || *value == 0 || *value == "";
                if is_zero && left_out.contains(&name.as_str()) {
                    return false;
                }
                let Some(field) = schema.field(name) else { return true };
                decode(field, value, stored);
                let is_entry = schema.property(name).is_none();
                if is_quantity(field) {
                    decode_quantity(is_entry, value);
                } else if value.is_null() && is_entry && field.type_name() == Some("string") {
                    *value = "".into();
                }
                // Structs have no additional properties: they stay, because only their pointers can be left out.
                let is_map = field.additional_properties().is_some();
                match value {
                    Value::Null => false,
                    Value::Array(items) => {
                        let stays = || schema.requires(name) || (schema.name(), name.as_str()) == REFUSED_EMPTY;
                        !items.is_empty() || stays()
                    }
                    Value::Object(entries) => schema.requires(name) || !is_map || !entries.is_empty(),
                    _ => true,
                }
            });
        }
        _ => {}
    }
}

static QUANTITY: LazyLock<Option<Schema<'static>>> =
    LazyLock::new(|| Schema::named("io.k8s.apimachinery.pkg.api.resource.Quantity"));

fn is_quantity(schema: Schema<'_>) -> bool {
    QUANTITY.is_some_and(|quantity| std::ptr::eq(quantity.json(), schema.json()))
}

/// Writes a quantity in its canonical form. What is none stays, for the caller to refuse. Of those in a map, which are amounts of
/// resources, thousandths are kept.
fn decode_quantity(is_entry: bool, value: &mut Value) {
    let canonical = if is_entry { quantity::canonical } else { quantity::canonical_fine };
    let text = match value {
        Value::String(text) => canonical(text),
        Value::Number(number) => canonical(&number.to_string()),
        Value::Null if is_entry => Some("0".to_owned()),
        _ => None,
    };
    if let Some(text) = text {
        *value = text.into();
    }
}

/// Sets a field that is not there: a pointer in the Go type.
fn add(object: &mut Value, key: &str, value: impl Into<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match fields.get_mut(key) {
        Some(Value::Null) | None => drop(fields.insert(key.to_owned(), value.into())),
        Some(_) => {}
    }
}

/// Sets a field that is not there, zero or the empty text: a value in the Go type.
fn fill(object: &mut Value, key: &str, value: impl Into<Value>) {
    let is_zero = object.get(key).is_some_and(|field| field == "" || field == 0);
    if is_zero && let Some(field) = object.get_mut(key) {
        *field = Value::Null;
    }
    add(object, key, value);
}

/// The field that holds an object, which is made when it is not there.
fn part<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    add(object, key, json!({}));
    match object {
        Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
        // Nothing can be set in what is not an object, so it stands for its own parts.
        other => other,
    }
}

/// The items of a list; nothing when it is not there.
fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn is_text(object: &Value, key: &str, text: &str) -> bool {
    object.get(key).is_some_and(|field| field == text)
}

#[cfg(test)]
mod tests;
