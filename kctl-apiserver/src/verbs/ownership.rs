//! What a client does not own of an object that it creates: what the server fills in after it has read it.

use serde_json::Value;

use crate::registry::Resource;

/// Lists of which an empty one is none.
const NONE_WHEN_EMPTY: &[&str] = &["/spec/tolerations", "/spec/clusterIPs", "/spec/ipFamilies"];

/// Drops from a new object what the client did not send and the server has filled in.
pub(super) fn leave_to_server(resource: &Resource, sent: &Value, object: &mut Value) {
    if resource.has_status() {
        remove(object, "/status");
    }
    for field in resource.rules.unowned {
        remove(object, field);
    }
    leave_filled_in(resource, sent, object);
}

/// Whether a client that changes an object has left out what the server has filled in, and will fill in again; of tolerations it
/// may be some.
pub(super) fn leaves_out(resource: &Resource, old: &Value, sent: &Value) -> bool {
    let is_there = |object: &Value, field: &str| object.pointer(field).is_some_and(|value| !value.is_null());
    let is_changed = |field: &str| field == "/spec/tolerations" && old.pointer(field) != sent.pointer(field);
    resource
        .rules
        .filled_in_by_update
        .iter()
        .any(|field| is_there(old, field) && (!is_there(sent, field) || is_changed(field)))
}

/// Drops from an object what the server has filled in beside what the client sent.
pub(super) fn leave_filled_in(resource: &Resource, sent: &Value, object: &mut Value) {
    let completed = resource.rules.complete_sent.filter(|_| sent["spec"].is_object()).map(|complete| {
        let mut sent = sent.clone();
        complete(&mut sent);
        sent
    });
    let sent = completed.as_ref().unwrap_or(sent);
    for field in resource.rules.filled_in {
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
