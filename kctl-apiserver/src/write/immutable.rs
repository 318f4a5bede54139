//! Errors of immutable metadata, found before `prepare` restores the stored values.
//!
//! Upstream: `ValidateObjectMetaAccessorUpdate` of `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`.

use std::collections::HashSet;

use serde_json::Value;

use super::{Write, admin_access};
use crate::{
    field_errors::{Errors, FieldError},
    json_path::entries,
    registry::kind::Subresource,
    request::RequestInfo,
    store::Store,
};

/// Returns the errors of the object before `prepare`. They are changes of immutable metadata, and admin access to
/// devices in a namespace without the label for it. After `prepare`, an attempt to change a field that it restores
/// would look like no change.
pub(super) fn errors(store: &Store, info: &RequestInfo, write: &Write) -> Errors {
    let mut errors = admin_access::errors(store, info, write.old(), &write.object);
    // A custom object's status is written without metadata.
    let has_metadata = info.resource.custom.is_none() || !info.subresource.is_status();
    if let Some(old) = write.old().filter(|_| has_metadata) {
        errors.extend(validate_metadata_update(info, old, &write.object));
    }
    errors
}

/// Returns the finalizers. A set, because an object may have more than 100,000 of them.
fn finalizers(meta: &Value) -> HashSet<&str> {
    entries(&meta["finalizers"]).filter_map(|(_, name)| name.as_str()).collect()
}

/// Validates changes of metadata (`ValidateObjectMetaAccessorUpdate`). Upstream also validates labels, annotations and
/// owner references here; `validate` finds their errors in any case.
fn validate_metadata_update(info: &RequestInfo, old: &Value, new: &Value) -> Errors {
    let (before, after) = (&old["metadata"], &new["metadata"]);
    let mut field_errors = Errors::default();
    let immutable =
        |field: &str| FieldError::invalid(&format!("metadata.{field}"), &after[field], "field is immutable");
    if before["name"] != after["name"] {
        field_errors.push(immutable("name"));
    }
    // Finalizers that the subresource does not write are restored without an error.
    let kept_metadata = match info.subresource {
        Subresource::Status => info.resource.kind.strategy.kept_by_status,
        other => info.resource.part(other).map_or(&[][..], |part| part.kept_metadata),
    };
    if before["deletionTimestamp"].is_string()
        && !kept_metadata.contains(&"finalizers")
        && !finalizers(after).is_subset(&finalizers(before))
    {
        let why = "no new finalizers can be added if the object is being deleted";
        field_errors.forbidden("metadata.finalizers", why);
    }
    // An absent value is not an error, nor is a changed deletion timestamp: the stored values are kept.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = &after[field];
        let is_restored =
            value.is_null() || *value == "" || (field == "deletionTimestamp" && before[field].is_string());
        if before[field] != *value && !is_restored {
            field_errors.push(immutable(field));
        }
    }
    field_errors
}
