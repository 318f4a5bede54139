//! Sends a write: encodes its body, waits for the permit, and marks the write until its outcome is known.

use http::Method;
use kctl_apimachinery::url;
use serde::Serialize;
use serde_json::Value;

use super::{Writer, target::Target, uncertain::UncertainWrite};
use crate::{
    object::Kind,
    transport::{self, ApiError, Operation, RequestBody},
};

/// The body of a successful response, and the mark of an uncertain write, which is removed when the cache has it.
pub(super) struct SentWrite {
    pub(super) text: String,
    pub(super) uncertain: UncertainWrite,
}

impl Writer {
    /// Sends any write: acquires a permit, sends the request, and tracks the outcome.
    ///
    /// Every operation of the writer ends here. The returned [`SentWrite`] keeps the write marked as uncertain
    /// until the cache has its result.
    ///
    /// A namespace whose cache is incomplete gets no writes ([`ApiError::NotWatched`]): a controller that sees half of
    /// its objects would create the other half again.
    ///
    /// # Cancel safety
    /// Safe to drop: the mark is kept, and the key's next reconcile lists the namespace first.
    pub(super) async fn send(
        &self,
        target: &Target<'_>,
        operation: &Operation,
        method: Method,
        path: &str,
        body: Option<RequestBody<'_>>,
    ) -> Result<SentWrite, ApiError> {
        let is_blocked = || target.source.store().blocks_writes(target.namespace);
        let blocked = || ApiError::NotWatched { operation: operation.into() };
        if is_blocked() {
            return Err(blocked());
        }
        let guard = self.permit.for_key(target.by, self.tenure).acquire(operation).await?;
        // The namespace may have been removed while this waited for a renewal of the Lease.
        if is_blocked() {
            guard.resolve();
            return Err(blocked());
        }
        let deadline = guard.deadline();
        let creates = method == Method::POST;
        let uncertain = self.uncertain_writes.mark(target);
        let response = transport::send_within(target.source.client(), operation, method, path, body, deadline).await;
        guard.finish(&response);
        if creates && response.as_ref().is_err_and(ApiError::is_unknown_resource) {
            // The CRD was probably deleted. The watch notices it a second later; until then every key would fail here.
            target.source.check_served();
        }
        match response {
            Ok(text) => Ok(SentWrite { text, uncertain }),
            Err(error) => {
                if !error.is_unknown_outcome() {
                    uncertain.mark_resolved();
                }
                Err(error)
            }
        }
    }

    /// Returns the path of an object or subresource, with the field manager and further options.
    ///
    /// # Errors
    /// [`ApiError::Unsendable`] for an object without a name.
    pub(super) fn path(
        &self,
        target: &Target<'_>,
        operation: &Operation,
        subresource: &str,
        options: &str,
    ) -> Result<String, ApiError> {
        if target.name.is_empty() {
            // The path would be the collection's, so a DELETE would end all of its objects.
            return Err(ApiError::Unsendable { operation: operation.into(), cause: "the name is empty".into() });
        }
        Ok(format!(
            "{}/{}{subresource}?fieldManager={}{options}",
            target.kind().path(target.namespace),
            url::escape(target.name),
            url::escape(&self.manager)
        ))
    }
}

/// Returns the object as JSON with `apiVersion` and `kind`, which types derived elsewhere may lack.
pub(super) fn with_type_meta<T: Serialize>(kind: &Kind, object: &T) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(object)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.clone().into());
    }
    Ok(value)
}

/// Serializes a body. Fails for maps whose keys are not strings.
pub(super) fn encode(operation: &Operation, value: &Value) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|error| serialization_error(operation, &error))
}

/// Returns the error for an object that cannot be serialized. Nothing was sent.
pub(super) fn serialization_error(operation: &Operation, error: &serde_json::Error) -> ApiError {
    ApiError::Unsendable { operation: operation.into(), cause: format!("the object cannot be encoded: {error}") }
}
