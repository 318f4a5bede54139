//! The errors with which an admission plugin rejects a request (`admission.NewForbidden`): always 403 `Forbidden`.

use serde_json::Value;

use crate::{admission::Attributes, metadata, request::RequestInfo, status::StatusError};

/// Returns the error of a plugin that rejects the object of a request. Its name is empty if it is generated later.
pub(in crate::write) fn rejection(attributes: &Attributes<'_>, why: &str) -> StatusError {
    StatusError::forbidden(&attributes.info.resource.id, &attributes.name, why)
}

/// Returns the error of a plugin that changes an object, which may have no name yet.
pub(super) fn forbidden(info: &RequestInfo, object: &Value, why: &str) -> StatusError {
    StatusError::forbidden(&info.resource.id, metadata::name_in_errors(object), why)
}
