//! The errors with which an admission plugin rejects a request.

use serde_json::Value;

use crate::{
    admission::Attributes,
    metadata,
    request::RequestInfo,
    status::{GroupResource, StatusError},
};

/// Builds the `Forbidden` error with which a plugin rejects a request, as `admission.NewForbidden` does. Every plugin
/// rejects with the same code and reason, 403 `Forbidden`.
pub(in crate::write) struct Forbid<'a> {
    /// The resource that the error names.
    resource: &'a GroupResource,
    /// The name of the object, possibly empty if it is generated later.
    name: &'a str,
}

impl<'a> Forbid<'a> {
    /// Creates it for the object of a request.
    pub(in crate::write) fn new(attributes: &'a Attributes<'_>) -> Self {
        Self { resource: &attributes.info.resource.id, name: &attributes.name }
    }

    /// Returns the error.
    pub(in crate::write) fn error(&self, why: &str) -> StatusError {
        StatusError::forbidden(self.resource, self.name, why)
    }

    /// Rejects the request.
    pub(super) fn reject(&self, why: &str) -> Result<(), StatusError> {
        Err(self.error(why))
    }

    /// Rejects the object if there are errors. One error contains all reasons, separated by commas.
    pub(super) fn reject_all(&self, errors: &[String]) -> Result<(), StatusError> {
        if errors.is_empty() { Ok(()) } else { self.reject(&errors.join(", ")) }
    }
}

/// Returns the `Forbidden` error of an object that a plugin changes, which may have no name yet.
pub(super) fn forbidden(info: &RequestInfo, object: &Value, why: &str) -> StatusError {
    StatusError::forbidden(&info.resource.id, metadata::name_in_errors(object), why)
}
