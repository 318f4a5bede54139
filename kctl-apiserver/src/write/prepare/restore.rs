//! Restores fields of the stored object that a write must not change, by subresource.
//!
//! Upstream: `BeforeUpdate` of `k8s.io/apiserver/pkg/registry/rest/update.go`, which calls `PrepareForUpdate` of the
//! kind's strategy.

use serde_json::Value;

use crate::{
    json_path::set,
    registry::{Resource, kind::Subresource},
};

/// Copies the fields from the stored object that are not written through a subresource.
///
/// | subresource | taken from the client |
/// |---|---|
/// | none | all but the status, if the kind has that subresource |
/// | `status`, `approval` | the status, and metadata for built-in kinds |
/// | a part, such as `resize` or `finalize` | the fields of that part |
pub(in crate::write) fn restore(resource: &Resource, subresource: Subresource, old: &Value, new: &mut Value) {
    match subresource {
        Subresource::Status | Subresource::Approval => {
            if resource.custom.is_some() {
                let managed = new["metadata"].get("managedFields").cloned();
                take_all_but(&["status"], old, new);
                set(&mut new["metadata"], "managedFields", managed);
            } else {
                take_all_but(&["metadata", "status"], old, new);
                for field in resource.kind.strategy.kept_by_status {
                    set(&mut new["metadata"], field, old["metadata"].get(*field).cloned());
                }
            }
            (resource.kind.strategy.prepare_status)(old, new);
        }
        Subresource::Main if resource.has_status() => set(new, "status", old.get("status").cloned()),
        _ => {
            if let Some(part) = resource.part(subresource) {
                *new = (part.with)(old, new);
            }
        }
    }
}

/// Copies all fields but these from another object. Most are equal already: comparing costs less than copying. Fields
/// that only `to` has are removed.
fn take_all_but(fields: &[&str], from: &Value, to: &mut Value) {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return };
    let is_kept = |name: &String| fields.contains(&name.as_str());
    to.retain(|name, _| is_kept(name) || from.contains_key(name));
    for (name, value) in from.iter().filter(|(name, _)| !is_kept(name)) {
        if to.get(name) != Some(value) {
            to.insert(name.clone(), value.clone());
        }
    }
}
