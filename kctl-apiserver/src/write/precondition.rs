//! Preconditions: the `resourceVersion` and the uid that the stored object must have for a write.

use http::StatusCode;
use serde_json::Value;

use super::Write;
use crate::{
    request::{RequestInfo, Verb},
    status::{FieldError, StatusError},
};

/// Checks that an update replaces the version that the client has seen (`Store.Update` of
/// `k8s.io/apiserver/pkg/registry/generic/registry`).
///
/// A version that is absent or `0` means an unconditional update, which most kinds allow.
///
/// An equal version passes; versions are compared as strings.
///
/// # Errors
/// `Conflict` if the stored version is another one, `Invalid` if the kind requires a version, and 500 if the version is
/// not a number.
pub(super) fn check(info: &RequestInfo, write: &Write) -> Result<(), StatusError> {
    let resource = &info.resource;
    let version = write.object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    // A create with a `resourceVersion` is rejected by the storage.
    let is_read = !write.is_new() || info.verb != Verb::Create;
    if is_read && !version.is_empty() && version.parse::<u64>().is_err() {
        let message = format!("metadata.resourceVersion: must be a number, found {version:?}");
        return Err(StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let Some(old) = write.old() else { return Ok(()) };
    if !["", "0"].contains(&version) && old["metadata"]["resourceVersion"] != version {
        return Err(StatusError::modified(&resource.id, &info.name));
    }
    // A patch starts from the stored object, so an absent version means that the patch removed it.
    if ["", "0"].contains(&version) && !resource.kind.allows_unconditional_update {
        let error = FieldError::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
        return Err(StatusError::invalid(&resource.id.group, &resource.id.resource, &info.name, &[error]));
    }
    Ok(())
}

/// Returns the error of a write that names another uid or version than the stored object has.
///
/// `Conflict`, 409.
pub(crate) fn failed(info: &RequestInfo, field: &str, required: &str, stored: &Value) -> StatusError {
    StatusError::conflict(&info.resource.id, &info.name, &mismatch(field, required, stored))
}

/// Returns the message about a precondition that the stored object does not meet.
///
/// kctl adds the advice at the end; upstream's message has only the two values.
pub(crate) fn mismatch(field: &str, required: &str, stored: &Value) -> String {
    let stored = stored.as_str().unwrap_or_default();
    format!("the precondition names {field} {required:?}, but the stored object has {stored:?}: read it again")
}
