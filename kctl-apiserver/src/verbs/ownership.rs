//! What a client does not own of an object that it creates: what the server fills in after it has read it.

use serde_json::Value;

use crate::{admit::defaults::node_ranges, kinds::Resource};

/// Fields by resource that belong to nobody unless the client has sent them.
const FILLED_IN: &[(&str, &str, &[&str])] = &[
    ("", "pods", &["/spec/preemptionPolicy", "/spec/priority", "/spec/tolerations"]),
    ("", "services", &["/spec/clusterIP", "/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy"]),
    ("", "namespaces", &["/spec"]),
    ("", "nodes", &["/spec"]),
    ("", "persistentvolumeclaims", &["/metadata/finalizers", "/spec/dataSource", "/spec/dataSourceRef"]),
    ("", "persistentvolumes", &["/metadata/finalizers"]),
    ("storage.k8s.io", "volumeattributesclasses", &["/metadata/finalizers"]),
    ("", "events", &["/eventTime", "/firstTimestamp", "/lastTimestamp", "/reportingComponent", "/reportingInstance"]),
    ("events.k8s.io", "events", &["/deprecatedFirstTimestamp", "/deprecatedLastTimestamp", "/deprecatedSource"]),
    ("rbac.authorization.k8s.io", "clusterroles", &["/rules"]),
    ("rbac.authorization.k8s.io", "roles", &["/rules"]),
    ("scheduling.k8s.io", "priorityclasses", &["/value"]),
    ("discovery.k8s.io", "endpointslices", &["/endpoints", "/ports"]),
    ("apps", "statefulsets", &["/spec/serviceName", "/spec/updateStrategy/rollingUpdate/maxUnavailable"]),
    ("coordination.k8s.io", "leases", &["/spec/strategy", "/spec/preferredHolder"]),
    ("resource.k8s.io", "resourceclaims", &["/spec/devices/requests"]),
    ("resource.k8s.io", "resourceclaimtemplates", &["/spec/spec/devices/requests"]),
    ("batch", "jobs", &["/spec/selector", "/spec/template/metadata", "/metadata/labels"]),
];

/// Of those the ones that an update fills in, too.
const FILLED_AGAIN: &[(&str, &str, &[&str])] = &[
    ("", "pods", &["/spec/preemptionPolicy", "/spec/priority", "/spec/tolerations"]),
    ("apps", "statefulsets", &["/spec/updateStrategy/rollingUpdate/maxUnavailable"]),
    ("batch", "jobs", &["/metadata/labels", "/spec/template/metadata"]),
];

/// Lists of which an empty one is none.
const NONE_WHEN_EMPTY: &[&str] = &["/spec/tolerations", "/spec/clusterIPs", "/spec/ipFamilies"];

/// Drops from a new object what the client did not send and the server has filled in.
pub(super) fn leave_to_server(resource: &Resource, sent: &Value, object: &mut Value) {
    if resource.has_status() {
        remove(object, "/status");
    }
    // Nobody may change what is asked for, so nobody owns it.
    if resource.of.group == "certificates.k8s.io" && resource.of.resource == "certificatesigningrequests" {
        remove(object, "/spec");
    }
    leave_filled_in(resource, sent, object);
}

/// Whether a client that changes an object has left out what the server has filled in, and will fill in again; of tolerations it
/// may be some.
pub(super) fn leaves_out(resource: &Resource, old: &Value, sent: &Value) -> bool {
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    let is_there = |object: &Value, field: &str| object.pointer(field).is_some_and(|value| !value.is_null());
    let mut fields =
        FILLED_AGAIN.iter().filter(|(group, name, _)| (*group, *name) == of).flat_map(|(_, _, fields)| *fields);
    let is_changed = |field: &str| field == "/spec/tolerations" && old.pointer(field) != sent.pointer(field);
    fields.any(|field| is_there(old, field) && (!is_there(sent, field) || is_changed(field)))
}

/// Drops from an object what the server has filled in beside what the client sent.
pub(super) fn leave_filled_in(resource: &Resource, sent: &Value, object: &mut Value) {
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    let read = read_with(of, sent);
    let sent = read.as_ref().unwrap_or(sent);
    let fields = FILLED_IN.iter().filter(|(group, name, _)| (*group, *name) == of).flat_map(|(_, _, fields)| *fields);
    for field in fields {
        match sent.pointer(field).cloned() {
            None | Some(Value::Null) => remove(object, field),
            // No toleration, address or family is none that was sent, and no text neither.
            Some(Value::Array(items)) if items.is_empty() && NONE_WHEN_EMPTY.contains(field) => remove(object, field),
            Some(Value::String(text)) if text.is_empty() => remove(object, field),
            // The server adds its own to them.
            Some(given) if *field == "/spec/tolerations" => put(object, field, given),
            // What the client sent of it is the client's, also where the server has dropped it since.
            Some(mut given) if given.is_object() && *field == "/spec/dataSourceRef" => {
                // Where it says no group, it says that it has none.
                given["apiGroup"] = given["apiGroup"].take();
                put(object, field, given);
            }
            Some(given) if given.is_object() || object.pointer(field).is_none_or(Value::is_null) => {
                put(object, field, given);
            }
            Some(_) => {}
        }
    }
}

/// What is read together with what was sent: the two fields with the addresses of a node's pods tell the same, and a job without
/// labels has those of its pods.
fn read_with(of: (&str, &str), sent: &Value) -> Option<Value> {
    let read = || Some(sent.clone()).filter(|sent| sent["spec"].is_object());
    match of {
        ("", "nodes") => {
            let mut sent = read()?;
            node_ranges(&mut sent["spec"]);
            Some(sent)
        }
        ("batch", "jobs") => {
            let mut sent = read()?;
            super::strategy::label_as_pods(&mut sent);
            Some(sent)
        }
        _ => None,
    }
}

fn put(object: &mut Value, pointer: &str, value: Value) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(map)) = object.pointer_mut(parent) {
        map.insert(key.to_owned(), value);
    }
}

fn remove(object: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(map)) = object.pointer_mut(parent) {
        map.remove(key);
    }
}
