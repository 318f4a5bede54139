//! Creates, updates and patches objects.

use std::sync::Arc;

use http::Method;
use kctl_apimachinery::url;
use serde_json::Value;

use super::{
    Writer,
    response::{remove_ended, store_response, store_response_undecoded},
    send::{SentWrite, encode, serialization_error, with_type_meta},
    target::Target,
};
use crate::{
    object::{Object, Readable, Stored},
    own_writes,
    queue::BackoffEffect,
    transport::{ApiError, RequestBody},
};

/// Content type of a JSON merge patch (RFC 7386).
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// Content type of a server-side apply. JSON is accepted under it, because it is YAML as well.
pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";

impl Writer {
    /// Creates an object, and returns it with the defaults that the API server set.
    ///
    /// # Errors
    /// 409 `AlreadyExists` if the name is taken. A create whose response is lost is looked up before the next reconcile,
    /// so `generateName` does not lead to a second object, unless the API server still processes the create then.
    pub(crate) async fn create<K: Object>(&self, target: &Target<'_>, object: &K) -> Result<Arc<K>, ApiError> {
        let operation = target.operation("create");
        let whole = with_type_meta(target.kind(), object).map_err(|error| serialization_error(&operation, &error))?;
        let body = encode(&operation, &whole)?;
        let path = format!("{}?fieldManager={}", target.kind().path(target.namespace), url::escape(&self.manager));
        let response = self.send(target, &operation, Method::POST, &path, Some(RequestBody::json(body))).await?;
        store_response(target, &operation, response, BackoffEffect::End).await
    }

    /// Replaces an object. With a `resourceVersion` in it, the server rejects it after any other change.
    ///
    /// # Errors
    /// 409 `Conflict` for an old `resourceVersion`. The key is reconciled again with the newer state.
    pub(crate) async fn update<K: Object>(&self, target: &Target<'_>, object: &K) -> Result<Arc<K>, ApiError> {
        let operation = target.operation("update");
        let whole = with_type_meta(target.kind(), object).map_err(|error| serialization_error(&operation, &error))?;
        let body = encode(&operation, &whole)?;
        let path = self.path(target, &operation, "", "")?;
        let response = self.send(target, &operation, Method::PUT, &path, Some(RequestBody::json(body))).await?;
        store_response(target, &operation, response, BackoffEffect::Reset).await
    }

    /// Sends a patch and returns the new state in the form of the cache, which saves decoding it.
    ///
    /// Finalizers are written this way, since only a reconcile reads the result.
    pub(crate) async fn patch_stored(
        &self,
        target: &Target<'_>,
        subresource: &str,
        content_type: &str,
        patch: &Value,
    ) -> Result<Arc<Stored>, ApiError> {
        let operation = target.operation_at("patch", subresource);
        let body = encode(&operation, patch)?;
        let path = self.path(target, &operation, subresource, "")?;
        let sent = Some(RequestBody::new(content_type, body));
        let response = self.send(target, &operation, Method::PATCH, &path, sent).await?;
        store_response_undecoded(target, &operation, response, effect_of_patch(subresource, patch)).await
    }

    /// Sends a patch of an object that cannot be decoded. The watch delivers the result, unless the patch ends the object.
    ///
    /// It removes a finalizer from an object that no Rust type of the program can hold, so that deletion is not
    /// blocked.
    pub(crate) async fn patch_unreadable(
        &self,
        target: &Target<'_>,
        content_type: &str,
        patch: &Value,
    ) -> Result<(), ApiError> {
        let operation = target.operation("patch");
        let body = encode(&operation, patch)?;
        let path = self.path(target, &operation, "", "")?;
        let SentWrite { text, uncertain } =
            self.send(target, &operation, Method::PATCH, &path, Some(RequestBody::new(content_type, body))).await?;
        if remove_ended(target, &text).await {
            target.source.forget_unreadable(&target.key());
        }
        uncertain.mark_resolved();
        Ok(())
    }

    /// Sends a patch and returns the new state.
    ///
    /// `subresource` is empty or has a slash, such as `/status`. An apply is sent with `force=true`: a
    /// controller takes the fields that it declares from other managers (Kubernetes documentation,
    /// "Server-Side Apply: Conflicts").
    pub(crate) async fn patch<K: Readable>(
        &self,
        target: &Target<'_>,
        subresource: &str,
        content_type: &str,
        patch: &Value,
    ) -> Result<Arc<K>, ApiError> {
        let apply = content_type == APPLY_PATCH;
        let operation = target.operation_at(if apply { "apply" } else { "patch" }, subresource);
        let body = encode(&operation, patch)?;
        let path = self.path(target, &operation, subresource, if apply { "&force=true" } else { "" })?;
        let response =
            self.send(target, &operation, Method::PATCH, &path, Some(RequestBody::new(content_type, body))).await?;
        store_response(target, &operation, response, effect_of_patch(subresource, patch)).await
    }
}

/// Returns the greatest effect of a patch on the key of the patched object. The server ignores fields other than the
/// status in a patch of the status.
fn effect_of_patch(subresource: &str, patch: &Value) -> BackoffEffect {
    match subresource {
        "" => own_writes::effect_of_body(patch),
        "/status" => BackoffEffect::Keep,
        _ => BackoffEffect::End,
    }
}
