//! Work → API server: the only module that writes. Each answer goes through the store before the caller sees it.

mod error;
mod permit;
mod recorder;
mod review;
pub(crate) mod transport;

use std::sync::Arc;

use http::Method;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

pub use error::ApiError;
pub use permit::{Permission, WritePermit};
pub(crate) use recorder::RecorderView;
pub use recorder::{EVENTS_MAX, EventType, Recorder};
pub(crate) use review::{UserInfo, access, token};

use crate::{
    object::{Kind, Object, Stored},
    source::Source,
    store::{Delta, view},
};

/// Writes objects in the name of one field manager.
#[derive(Clone)]
pub struct Writer {
    manager: String,
    permit: WritePermit,
}

/// Where a written object is: what the request path is made of, and whose answer it is.
pub(crate) struct Target<'a> {
    pub(crate) source: &'a Source,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl Target<'_> {
    fn kind(&self) -> &Kind {
        &self.source.identity().kind
    }

    fn operation(&self, verb: &str) -> String {
        match self.namespace {
            Some(namespace) => format!("{verb} {} {namespace}/{}", self.kind(), self.name),
            None => format!("{verb} {} {}", self.kind(), self.name),
        }
    }
}

/// The content types of patches.
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";

impl Writer {
    /// A writer; `manager` is the field manager of all that it writes.
    pub fn new(manager: &str) -> Self {
        Self { manager: manager.into(), permit: WritePermit::always() }
    }

    /// The same, which asks this permit before each write.
    #[must_use]
    pub fn permit(mut self, permit: WritePermit) -> Self {
        self.permit = permit;
        self
    }

    /// The way of every write.
    async fn send(
        &self,
        target: &Target<'_>,
        operation: &str,
        method: Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<String, ApiError> {
        if target.source.store().bars(target.namespace) {
            return Err(ApiError::NotFollowed { operation: operation.into() });
        }
        let within = self.permit.ask(operation).await?;
        let creates = method == Method::POST;
        let answer = transport::send_within(target.source.client(), operation, method, path, body, within).await;
        if creates && answer.as_ref().is_err_and(ApiError::is_unknown_resource) {
            // The watch hears a second later that the definition was deleted; until then every key would try.
            target.source.doubt();
        }
        answer
    }

    pub(crate) async fn create<K: Object>(&self, target: &Target<'_>, object: &K) -> Result<Arc<K>, ApiError> {
        let operation = target.operation("create");
        let body = encode(&operation, &typed(target.kind(), object))?;
        let path =
            format!("{}?fieldManager={}", target.kind().path(target.namespace), transport::escape(&self.manager));
        let answer = self.send(target, &operation, Method::POST, &path, Some(("application/json", body))).await?;
        written(target, &operation, &answer).await
    }

    pub(crate) async fn update<K: Object>(&self, target: &Target<'_>, object: &K) -> Result<Arc<K>, ApiError> {
        let operation = target.operation("update");
        let body = encode(&operation, &typed(target.kind(), object))?;
        let path = self.path(target, "", "");
        let answer = self.send(target, &operation, Method::PUT, &path, Some(("application/json", body))).await?;
        written(target, &operation, &answer).await
    }

    /// Sends a patch whose answer only the cache wants.
    pub(crate) async fn patch_stored(
        &self,
        target: &Target<'_>,
        subresource: &str,
        content_type: &str,
        patch: &Value,
    ) -> Result<(), ApiError> {
        let operation = target.operation("patch");
        let body = encode(&operation, patch)?;
        let path = self.path(target, subresource, "");
        let sent = Some((content_type, body));
        let answer = self.send(target, &operation, Method::PATCH, &path, sent).await?;
        accepted(target, &operation, &answer).await.map(drop)
    }

    /// Sends a patch; `subresource` is empty or for example `/status`.
    pub(crate) async fn patch<K: Object>(
        &self,
        target: &Target<'_>,
        subresource: &str,
        content_type: &str,
        patch: &Value,
    ) -> Result<Arc<K>, ApiError> {
        let apply = content_type == APPLY_PATCH;
        let operation = target.operation(if apply { "apply" } else { "patch" });
        let body = encode(&operation, patch)?;
        let path = self.path(target, subresource, if apply { "&force=true" } else { "" });
        let answer = self.send(target, &operation, Method::PATCH, &path, Some((content_type, body))).await?;
        written(target, &operation, &answer).await
    }

    /// Sets the replicas through the scale subresource.
    pub(crate) async fn scale(&self, target: &Target<'_>, replicas: i32) -> Result<(), ApiError> {
        let operation = target.operation("scale");
        let body = encode(&operation, &json!({"spec": {"replicas": replicas}}))?;
        let path = self.path(target, "/scale", "");
        // The answer is a Scale, not the object: the watch brings that.
        self.send(target, &operation, Method::PATCH, &path, Some((MERGE_PATCH, body))).await.map(drop)
    }

    /// Creates what is not an object of its own: an eviction, a binding, a token. Returns the answer.
    pub(crate) async fn create_subresource(
        &self,
        target: &Target<'_>,
        subresource: &str,
        body: &Value,
    ) -> Result<Value, ApiError> {
        let operation = target.operation(&format!("create {subresource} of"));
        let body = encode(&operation, body)?;
        let path = self.path(target, &format!("/{subresource}"), "");
        let sent = Some(("application/json", body));
        let answer = self.send(target, &operation, Method::POST, &path, sent).await?;
        serde_json::from_str(&answer).map_err(|error| ApiError::Unreadable { operation, cause: error.to_string() })
    }

    /// Deletes every object of a namespace that a label selector matches.
    pub(crate) async fn delete_collection(&self, target: &Target<'_>, labels: &str) -> Result<(), ApiError> {
        let operation = target.operation("deletecollection");
        let path = format!("{}?labelSelector={}", target.kind().path(target.namespace), transport::escape(labels));
        self.send(target, &operation, Method::DELETE, &path, None).await.map(drop)
    }

    /// Reads an object past the cache.
    pub(crate) async fn get<K: Object>(
        &self,
        client: &Client,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Arc<K>, ApiError> {
        let operation = match namespace {
            Some(namespace) => format!("get {kind} {namespace}/{name}"),
            None => format!("get {kind} {name}"),
        };
        let path = format!("{}/{}", kind.path(namespace), transport::escape(name));
        let answer = transport::get(client, &operation, &path).await?;
        let unreadable = |cause: String| ApiError::Unreadable { operation: operation.clone(), cause };
        let stored = Stored::accept(kind, &answer).map_err(|error| unreadable(format!("{error}: {}", error.source)))?;
        stored.decode::<K>().map_err(|error| unreadable(format!("{error}: {}", error.source)))
    }

    /// Reads one object by list: what a controller that caches a kind may do.
    pub(crate) async fn find<K: Object>(&self, target: &Target<'_>) -> Result<Option<Arc<K>>, ApiError> {
        #[derive(serde::Deserialize)]
        struct Found {
            items: Vec<Value>,
        }
        let operation = target.operation("list");
        let selector = transport::escape(&format!("metadata.name={}", target.name));
        let path = format!("{}?fieldSelector={selector}", target.kind().path(target.namespace));
        let answer = transport::get(target.source.client(), &operation, &path).await?;
        let unreadable = |cause: String| ApiError::Unreadable { operation: operation.clone(), cause };
        let found: Found = serde_json::from_str(&answer).map_err(|error| unreadable(error.to_string()))?;
        let Some(item) = found.items.first() else { return Ok(None) };
        let text = typed(target.kind(), item).to_string();
        written(target, &operation, &text).await.map(Some)
    }

    /// Deletes exactly the object with this uid.
    pub(crate) async fn delete(&self, target: &Target<'_>, uid: &str) -> Result<(), ApiError> {
        let operation = target.operation("delete");
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        let body = encode(&operation, &options)?;
        let path = self.path(target, "", "");
        let answer = self.send(target, &operation, Method::DELETE, &path, Some(("application/json", body))).await;
        let key = crate::key::ObjectKey::new(target.namespace, target.name);
        match answer {
            // A Status says that it is gone; the object itself, that it is terminating, gone or on its way out.
            Ok(body) => {
                match target.source.accept(&body) {
                    Ok(object) if object.meta().uid == uid && lives_on(&object) => {
                        target.source.store().acknowledged(Delta::Written(object)).await;
                    }
                    _ => target.source.store().acknowledged(Delta::Gone(key, uid.into())).await,
                }
                Ok(())
            }
            // What was asked for is the case.
            Err(error) if error.is_not_found() => {
                target.source.store().acknowledged(Delta::Gone(key, uid.into())).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn path(&self, target: &Target<'_>, subresource: &str, options: &str) -> String {
        format!(
            "{}/{}{subresource}?fieldManager={}{options}",
            target.kind().path(target.namespace),
            transport::escape(target.name),
            transport::escape(&self.manager)
        )
    }
}

/// An answer to a delete that still has something to wait for: a finalizer or a grace period.
fn lives_on(object: &Stored) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        metadata: Grace,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Grace {
        deletion_grace_period_seconds: Option<i64>,
    }
    let meta = object.meta();
    let grace =
        serde_json::from_str::<Head>(object.json()).ok().and_then(|head| head.metadata.deletion_grace_period_seconds);
    meta.deletion_timestamp.is_some() && (!meta.finalizers.is_empty() || grace.unwrap_or(0) > 0)
}

async fn written<K: Object>(target: &Target<'_>, operation: &str, answer: &str) -> Result<Arc<K>, ApiError> {
    let object = accepted(target, operation, answer).await?;
    view(&object).ok_or_else(|| ApiError::Unreadable { operation: operation.into(), cause: "not of its kind".into() })
}

/// Takes an answer into the cache; it is there when this returns.
async fn accepted(target: &Target<'_>, operation: &str, answer: &str) -> Result<Arc<Stored>, ApiError> {
    let unreadable = |cause: String| ApiError::Unreadable { operation: operation.into(), cause };
    let object = target.source.accept(answer).map_err(|error| unreadable(format!("{error}: {}", error.source)))?;
    target.source.store().acknowledged(Delta::Written(object.clone())).await;
    Ok(object)
}

/// The object as JSON with its kind and version, which k8s-openapi types carry and others may not.
pub(crate) fn typed<T: Serialize>(kind: &Kind, object: &T) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.clone().into());
    }
    value
}

fn encode(operation: &str, value: &Value) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|error| ApiError::Unreadable {
        operation: operation.into(),
        cause: format!("the object cannot be encoded: {error}"),
    })
}
