//! Writes to subresources: scale, eviction, binding and token.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{
    Writer,
    objects::MERGE_PATCH,
    send::{SentWrite, encode},
    target::Target,
};
use crate::{
    object::{Uid, Version},
    own_writes,
    queue::BackoffEffect,
    transport::{ApiError, Operation, RequestBody},
};

/// Longest wait for the watch event of an object that was scaled; after it the object is read.
const WATCH_EVENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The part of a `Scale` that identifies the state of the scaled object.
///
/// The API server copies uid and resourceVersion of the object into it (Kubernetes,
/// `pkg/registry/apps/deployment/storage`).
#[derive(serde::Deserialize)]
struct Scale {
    metadata: ScaleMeta,
}

/// Uid and version of the scaled object, not of the `Scale`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScaleMeta {
    uid: Uid,
    resource_version: String,
}

impl Writer {
    /// Sets `spec.replicas` through the scale subresource.
    ///
    /// The `uid` is a precondition for built-in kinds. The scale subresource of custom resources ignores it.
    ///
    /// The response has no object. The watch usually delivers the new state within a second; otherwise the object is read
    /// once.
    pub(crate) async fn scale(&self, target: &Target<'_>, uid: &str, replicas: i32) -> Result<(), ApiError> {
        let operation = target.operation("scale").on_subresource();
        let body = encode(&operation, &json!({ "metadata": { "uid": uid }, "spec": { "replicas": replicas } }))?;
        let path = self.path(target, &operation, "/scale", "")?;
        let SentWrite { text, uncertain } =
            self.send(target, &operation, Method::PATCH, &path, Some(RequestBody::new(MERGE_PATCH, body))).await?;
        // The `Scale` has the version of the scaled object, which the watch delivers, or else a read.
        let scale: Scale = serde_json::from_str(&text)
            .map_err(|error| ApiError::Unreadable { operation: operation.clone(), cause: error.to_string() })?;
        let (uid, version) = (scale.metadata.uid, Version::from(&*scale.metadata.resource_version));
        own_writes::record_write(&uid, &version, BackoffEffect::Reset);
        if target.source.wait_for_version(&target.key(), &uid, &version, WATCH_EVENT_TIMEOUT).await
            || self.refresh_object(target, &uid.to_string()).await
        {
            uncertain.mark_resolved();
        }
        Ok(())
    }

    /// Reads an object into the cache after a write whose response does not contain it.
    ///
    /// Returns `false` if the read failed; the write is then still marked as uncertain.
    async fn refresh_object(&self, target: &Target<'_>, uid: &str) -> bool {
        match target.source.refresh_object(target.namespace, target.name, uid).await {
            Ok(()) => true,
            Err(error) => {
                let (kind, object) = (&target.kind().kind, target.key());
                tracing::debug!(
                    %kind,
                    %object,
                    %error,
                    "failed to read the object after a write; its namespace is listed before the next reconcile"
                );
                false
            }
        }
    }

    /// Creates a subresource such as an eviction or a binding, then reads the object.
    ///
    /// The response to an eviction is a `Status`. The read after it shows the `deletionTimestamp`, so the next reconcile
    /// does not evict the same Pod again.
    ///
    /// # Errors
    /// 429 for an eviction that a `PodDisruptionBudget` forbids for now.
    pub(crate) async fn post(
        &self,
        target: &Target<'_>,
        subresource: &str,
        uid: &str,
        body: &Value,
    ) -> Result<(), ApiError> {
        let (_, done) = self.create_subresource(target, subresource, body).await?;
        if self.refresh_object(target, uid).await {
            done.uncertain.mark_resolved();
        }
        Ok(())
    }

    /// Requests a token of a service account (`TokenRequest`) and returns the response.
    ///
    /// The server stores nothing, so the cache does not change.
    pub(crate) async fn token(&self, target: &Target<'_>, request: &Value) -> Result<Value, ApiError> {
        let (operation, SentWrite { text, uncertain }) = self.create_subresource(target, "token", request).await?;
        uncertain.mark_resolved();
        serde_json::from_str(&text).map_err(|error| ApiError::Unreadable { operation, cause: error.to_string() })
    }

    /// Posts to a subresource and returns the operation's name with the response.
    async fn create_subresource(
        &self,
        target: &Target<'_>,
        subresource: &str,
        body: &Value,
    ) -> Result<(Operation, SentWrite), ApiError> {
        let operation = target.operation(format!("create {subresource} of")).on_subresource();
        let body = encode(&operation, body)?;
        let path = self.path(target, &operation, &format!("/{subresource}"), "")?;
        let sent = Some(RequestBody::json(body));
        let done = self.send(target, &operation, Method::POST, &path, sent).await?;
        Ok((operation, done))
    }
}
