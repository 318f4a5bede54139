//! `metadata.generation`: which kinds have it, and which changes increment it.
//!
//! Upstream each strategy has its own code for this; here it is a property of the kind (`Generation`).
//!
//! Two other places increment it: `lifecycle/delete.rs` when an object is marked as being deleted, and `prepare.rs` for
//! an apply with fields that are not persisted.

use serde_json::Value;

use crate::registry::{
    Resource,
    kind::{Generation, Subresource},
};

/// Returns `true` if a new object has a generation. It starts at 1.
pub(super) fn has_generation(resource: &Resource) -> bool {
    matches!(resource.kind.metadata.generation, Generation::Fixed | Generation::Counted)
}

/// Returns `true` if changes are counted. A kind with `Fixed` always keeps generation 1.
pub(super) fn counts_generations(resource: &Resource) -> bool {
    matches!(resource.kind.metadata.generation, Generation::Counted | Generation::CountedFromNone)
}

/// Returns `true` if a write through the subresource changes a counted field. A few kinds also count labels or
/// annotations.
pub(super) fn changes_generation(resource: &Resource, subresource: Subresource, old: &Value, new: &Value) -> bool {
    let is_changed = |field: &&str| old["metadata"][*field] != new["metadata"][*field];
    (subresource.is_main() && resource.kind.metadata.counted.iter().any(is_changed))
        || changes_object(resource, old, new)
}

/// Returns `true` if anything but metadata and status differs. A custom object without the subresource `status` counts
/// its status, too.
fn changes_object(resource: &Resource, old: &Value, new: &Value) -> bool {
    let ignored =
        |key: &str| key == "metadata" || (key == "status" && (resource.custom.is_none() || resource.has_status()));
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return false };
    old.iter().any(|(key, value)| !ignored(key) && new.get(key) != Some(value))
        || new.keys().any(|key| !ignored(key) && !old.contains_key(key))
}
