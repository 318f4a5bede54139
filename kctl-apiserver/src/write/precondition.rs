//! Preconditions: the `resourceVersion` and the uid that the stored object must have for a write.

use serde_json::Value;

use super::Write;
use crate::{
    request::{RequestInfo, Verb},
    status::{FieldError, GroupResource, StatusError},
};

/// Checks that an update replaces the version that the client has seen (`Store.Update` of
/// `k8s.io/apiserver/pkg/registry/generic/registry`). A version that is absent or `0` means an unconditional update,
/// which most kinds allow.
///
/// # Errors
/// `Conflict` if the stored version differs, `Invalid` if the kind requires a version, and 500 if the version is not a
/// number.
pub(super) fn check(info: &RequestInfo, write: &Write) -> Result<(), StatusError> {
    let resource = &info.resource;
    let version = write.object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    // A create with a `resourceVersion` is rejected by the storage.
    let is_read = !write.is_new() || info.verb != Verb::Create;
    if is_read && !version.is_empty() && version.parse::<u64>().is_err() {
        let message = format!("metadata.resourceVersion: must be a number, found {version:?}");
        return Err(StatusError::server_error(message));
    }
    let Some(old) = write.old() else { return Ok(()) };
    if !["", "0"].contains(&version) && old["metadata"]["resourceVersion"] != version {
        return Err(StatusError::optimistic_lock_error(&resource.id, &info.name));
    }
    // A patch starts from the stored object, so an absent version means that the patch removed it.
    if ["", "0"].contains(&version) && !resource.kind.strategy.allows_unconditional_update {
        let error = FieldError::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
        return Err(StatusError::invalid(&resource.id.group, &resource.id.resource, &info.name, &[error]));
    }
    Ok(())
}

/// The object that an error about a precondition names.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) resource: &'a GroupResource,
    pub(crate) name: &'a str,
}

impl<'a> Subject<'a> {
    /// Returns the object in the path of a request.
    pub(crate) fn from_request(info: &'a RequestInfo) -> Self {
        Self { resource: &info.resource.id, name: &info.name }
    }
}

/// Checks that the stored object has the uid that the client requires. No uid and the empty one require nothing.
/// `stored` is null for an object that does not exist.
///
/// # Errors
/// `Conflict` with the required and the stored uid.
pub(crate) fn check_uid(subject: Subject<'_>, required: &Value, stored: &Value) -> Result<(), StatusError> {
    check_field(subject, "UID", non_empty(required), stored)
}

/// Checks that the stored object has the `resourceVersion` that the client requires, like [`check_uid`].
///
/// # Errors
/// `Conflict` with the required and the stored version.
pub(crate) fn check_version(subject: Subject<'_>, required: &Value, stored: &Value) -> Result<(), StatusError> {
    check_field(subject, "ResourceVersion", non_empty(required), stored)
}

/// Checks a field of `preconditions` in the options of a delete, where the empty string is a value.
///
/// # Errors
/// `Conflict` with the required and the stored value.
pub(crate) fn check_field(
    subject: Subject<'_>,
    field: &str,
    required: Option<&str>,
    stored: &Value,
) -> Result<(), StatusError> {
    let Some(required) = required.filter(|required| stored != required) else { return Ok(()) };
    let stored = stored.as_str().unwrap_or_default();
    // kctl adds the advice at the end; upstream's message has only the two values.
    let why =
        format!("the precondition names {field} {required:?}, but the stored object has {stored:?}: read it again");
    Err(StatusError::conflict(subject.resource, subject.name, &why))
}

/// Returns a string that is not empty.
fn non_empty(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
