//! Writes: the last stage of the control loop, from a reconcile function to the API server.
//!
//! All writes of a controller go through a [`Writer`]. `kctl`'s `Context` and its children call it; the
//! declaration of the controller decides which of its operations a reconcile function can name. Every
//! write passes the same four steps:
//!
//! 1. The [`WritePermit`] waits until the rest of the Lease is longer than the write may take, and fails
//!    with [`ApiError::NotLeading`] if this process does not lead.
//! 2. The request is sent, with the field manager of the program and a timeout.
//! 3. The response goes into the [`store`](crate::store) *before* the caller gets it. The next read of the
//!    cache sees it, and the watch event that follows changes nothing.
//! 4. If the outcome is unknown (timeout, 5xx, a reconcile that was cancelled), the key is marked. Before
//!    it is reconciled again, the cache lists the namespace of that write.
//!
//! Step 3 makes a reconcile function read its own writes, and step 4 keeps that promise when a response is
//! lost. controller-runtime offers the former as `EnableReadYourWritesConsistency` (v0.25, off by default).
//!
//! Requests that the server rejects with 429 or 503 and a `Retry-After` header are repeated up to 10 times,
//! as long as the waits fit into the timeout. A server that names a wait has done nothing, so this is safe
//! for creates as well.
//!
//! # Outcomes of a write
//!
//! | Answer | Cache | Next reconcile of the key |
//! |---|---|---|
//! | success with the object | has it before the call returns | as the reconcile function asks |
//! | success with the last state of an object that the write ends | drops the object | the same |
//! | success with something else, such as a `Scale` | waits for the watch, or reads the object | the same |
//! | 409 `Conflict` | unchanged | at the next event, or after at least 1 s; it does not count as a failure |
//! | 404 for the object of a `DELETE` | drops the object | as the reconcile function asks: the call succeeds |
//! | rejected with another 4xx | unchanged | after backoff |
//! | 5xx, timeout, connection lost | unchanged | first lists the namespace of the write |
//! | reconcile dropped or panicked meanwhile | unchanged | first lists the namespace of the write |
//! | no permit | unchanged; nothing was sent | after this process leads again |
//!
//! [`ApiError`] has these classes as methods, so that no caller has to look at status codes:
//!
//! ```
//! use kctl_runtime::writer::ApiError;
//!
//! let status = r#"{"reason": "Conflict", "message": "the object has been modified", "code": 409}"#;
//! let conflict = ApiError::refused("update Pod shop/web-0", 409, None, status);
//! assert!(!conflict.is_unknown_outcome(), "the server decided, and the cache is right");
//!
//! let lost = ApiError::unanswered("create Pod shop/web-0", "connection reset");
//! assert!(lost.is_unknown_outcome(), "the Pod may exist");
//! ```
//!
//! # Events
//!
//! Events take another path: a [`Recorder`] queues them and never delays a reconcile. At most [`EVENTS_MAX`] wait per
//! controller.

mod deletion;
mod permit;
mod propagation;
mod raw;
mod recorder;
mod review;
mod uncertain;

use std::{sync::Arc, time::Duration};

use http::Method;
use kctl_apimachinery::url;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use deletion::{Deletion, Stage};
pub(crate) use permit::ShardPermits;
pub use permit::{LeaseState, WriteGuard, WritePermit};
pub(crate) use propagation::Propagation;
pub(crate) use recorder::EventRecord;
pub(crate) use recorder::RecorderView;
pub use recorder::{EVENTS_MAX, EventType, Recorder};
pub(crate) use review::{UserInfo, access, token};
use uncertain::UncertainWrite;
pub(crate) use uncertain::UncertainWrites;

pub use crate::transport::{ApiError, Operation};

use crate::{
    key::ObjectKey,
    object::{Kind, Object, Readable, Stored, Uid, Version},
    own_writes,
    queue::BackoffEffect,
    source::Source,
    store::{Delta, decode_checked},
    transport,
};

/// Sends the writes of one controller.
///
/// It has a field manager, which `metadata.managedFields` records for each field that is applied, and a
/// [`WritePermit`]. Its operations are internal, because each needs the cache that takes the response in:
/// use them through the context of a reconcile function. You build a writer to assemble the stages of the
/// loop by hand.
///
/// ```
/// use kctl_runtime::writer::{WritePermit, Writer};
///
/// let writer = Writer::new("podset.example.com").permit(WritePermit::always());
/// # drop(writer);
/// ```
///
/// Clones are cheap. They share the permit and the record of uncertain writes.
#[derive(Clone)]
pub struct Writer {
    /// The field manager, sent as `fieldManager` with every write.
    manager: String,
    /// Asked before each write.
    permit: WritePermit,
    /// The writes whose outcome is unknown, by the key that sent them.
    uncertain_writes: UncertainWrites,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("manager", &self.manager).field("permit", &self.permit).finish_non_exhaustive()
    }
}

/// The object of a write: enough to build the request path, and the cache that takes the response in.
pub(crate) struct Target<'a> {
    /// The key whose reconcile writes. A write of unknown outcome holds back this key alone.
    pub(crate) by: &'a ObjectKey,
    /// The source of the object's kind: its client sends the write, its store takes the response in.
    pub(crate) source: &'a Arc<Source>,
    /// `None` for a cluster-scoped object.
    pub(crate) namespace: Option<&'a str>,
    /// The object's name; only for messages where the request has no name in its path.
    pub(crate) name: &'a str,
}

impl Target<'_> {
    /// Returns the kind of the object, as its source lists it.
    fn kind(&self) -> &Kind {
        &self.source.config().kind
    }

    /// Returns the key of the object in its store.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace, self.name)
    }

    /// Returns `patch Pod shop/web-0`, as it begins error messages.
    pub(crate) fn operation(&self, verb: impl Into<String>) -> Operation {
        Operation::on_object(verb, &self.source.config().cluster, self.kind(), self.key())
    }
}

/// The body of a successful response, and the mark of an uncertain write, which is removed when the cache has it.
struct Done {
    text: String,
    uncertain: UncertainWrite,
}

/// Content type of a JSON merge patch (RFC 7386).
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// Content type of a server-side apply. JSON is accepted under it, because it is YAML as well.
pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Longest wait for the watch event of an object that was scaled; after it the object is read.
const WATCH_WITHIN: Duration = Duration::from_secs(1);
/// Longest wait for the watch event of a write on a server whose resourceVersions cannot be compared;
/// after it the key's next reconcile waits for a list.
const OPAQUE_WITHIN: Duration = Duration::from_secs(10);

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
    /// Creates a writer with this field manager, whose permit always grants.
    ///
    /// API servers accept at most 128 characters.
    ///
    /// All replicas of a program should use the same name, and keep it over versions. Server-side apply releases a
    /// field when the manager that applied it stops sending it; under a new name the old fields would stay for ever.
    pub fn new(manager: &str) -> Self {
        Self { manager: manager.into(), permit: WritePermit::always(), uncertain_writes: UncertainWrites::default() }
    }

    /// Replaces the permit that is checked before each write.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kctl_runtime::writer::{LeaseState, WritePermit, Writer};
    /// use tokio::sync::watch;
    ///
    /// let (election, permission) = watch::channel(LeaseState::NotHeld);
    /// let permit = WritePermit::from_lease(permission, Duration::from_secs(4), Duration::from_secs(1));
    /// let writer = Writer::new("podset.example.com").permit(permit);
    /// // Writes fail until the election sends `LeaseState::HeldUntil`.
    /// # drop((election, writer));
    /// ```
    #[must_use]
    pub fn permit(mut self, permit: WritePermit) -> Self {
        self.permit = permit;
        self
    }

    /// Returns the writes of this controller whose outcome is unknown.
    pub(crate) fn uncertain_writes(&self) -> &UncertainWrites {
        &self.uncertain_writes
    }

    /// Returns a client for requests that have no operation here; its writes wait for the permit of the key.
    pub(crate) fn raw(&self, client: &Client, key: &ObjectKey) -> Client {
        raw::guarded(client, &self.permit.of_key(key))
    }

    /// Sends any write: acquires a permit, sends the request, and tracks the outcome.
    ///
    /// Every operation of the writer ends here. The returned [`Done`] keeps the write marked as uncertain
    /// until the cache has its result.
    ///
    /// A namespace whose cache is incomplete gets no writes ([`ApiError::NotFollowed`]): a controller that sees half of
    /// its objects would create the other half again.
    ///
    /// # Cancel safety
    /// Safe to drop: the mark stays, and the key's next reconcile lists the namespace first.
    async fn send(
        &self,
        target: &Target<'_>,
        operation: &Operation,
        method: Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Done, ApiError> {
        let is_blocked = || target.source.store().blocks_writes(target.namespace);
        let blocked = || ApiError::NotFollowed { operation: operation.into() };
        if is_blocked() {
            return Err(blocked());
        }
        let guard = self.permit.of_key(target.by).acquire(operation).await?;
        // The namespace may have been removed while this waited for a renewal of the Lease.
        if is_blocked() {
            guard.answered();
            return Err(blocked());
        }
        let within = guard.timeout();
        let creates = method == Method::POST;
        let uncertain = self.uncertain_writes.mark(target);
        let answer = transport::send_within(target.source.client(), operation, method, path, body, within).await;
        guard.finish(&answer);
        if creates && answer.as_ref().is_err_and(ApiError::is_unknown_resource) {
            // The CRD was probably deleted. The watch notices it a second later; until then every key would fail here.
            target.source.check_served();
        }
        match answer {
            Ok(text) => Ok(Done { text, uncertain }),
            Err(error) => {
                if !error.is_unknown_outcome() {
                    uncertain.resolved();
                }
                Err(error)
            }
        }
    }

    /// Creates an object, and returns it with the defaults that the API server set.
    ///
    /// # Errors
    /// 409 `AlreadyExists` if the name is taken. A create whose response is lost is looked up before the next reconcile,
    /// so `generateName` does not lead to a second object.
    pub(crate) async fn create<K: Object>(&self, target: &Target<'_>, object: &K) -> Result<Arc<K>, ApiError> {
        let operation = target.operation("create");
        let whole = typed(target.kind(), object).map_err(|error| unsendable(&operation, &error))?;
        let body = encode(&operation, &whole)?;
        let path = format!("{}?fieldManager={}", target.kind().path(target.namespace), url::escape(&self.manager));
        let answer = self.send(target, &operation, Method::POST, &path, Some(("application/json", body))).await?;
        written(target, &operation, answer, BackoffEffect::End).await
    }

    /// Replaces an object. With a `resourceVersion` in it, the server rejects it after any other change.
    ///
    /// # Errors
    /// 409 `Conflict` for an old `resourceVersion`. The key is reconciled again with the newer state.
    pub(crate) async fn update<K: Object>(&self, target: &Target<'_>, object: &K) -> Result<Arc<K>, ApiError> {
        let operation = target.operation("update");
        let whole = typed(target.kind(), object).map_err(|error| unsendable(&operation, &error))?;
        let body = encode(&operation, &whole)?;
        let path = self.path(target, "", "");
        let answer = self.send(target, &operation, Method::PUT, &path, Some(("application/json", body))).await?;
        written(target, &operation, answer, BackoffEffect::Reset).await
    }

    /// Sends a patch whose result only the cache needs, which saves decoding it.
    ///
    /// The response is cached as JSON. Finalizers are written this way, since only the next reconcile reads the result.
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
        accepted(target, &operation, answer, effect_of_patch(subresource, patch)).await
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
        let path = self.path(target, "", "");
        let Done { text, uncertain } =
            self.send(target, &operation, Method::PATCH, &path, Some((content_type, body))).await?;
        if remove_ended(target, &text).await {
            target.source.forget_unreadable(&target.key());
        }
        uncertain.resolved();
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
        let operation = target.operation(if apply { "apply" } else { "patch" });
        let body = encode(&operation, patch)?;
        let path = self.path(target, subresource, if apply { "&force=true" } else { "" });
        let answer = self.send(target, &operation, Method::PATCH, &path, Some((content_type, body))).await?;
        written(target, &operation, answer, effect_of_patch(subresource, patch)).await
    }

    /// Sets `spec.replicas` through the scale subresource.
    ///
    /// The `uid` is a precondition for built-in kinds. The scale subresource of custom resources ignores it.
    ///
    /// The response has no object. The watch usually delivers the new state within a second; otherwise the object is read
    /// once.
    pub(crate) async fn scale(&self, target: &Target<'_>, uid: &str, replicas: i32) -> Result<(), ApiError> {
        let operation = target.operation("scale");
        let body = encode(&operation, &json!({ "metadata": { "uid": uid }, "spec": { "replicas": replicas } }))?;
        let path = self.path(target, "/scale", "");
        let Done { text, uncertain } =
            self.send(target, &operation, Method::PATCH, &path, Some((MERGE_PATCH, body))).await?;
        // The `Scale` has the version of the scaled object, which the watch delivers, or else a read.
        let scale: Scale = serde_json::from_str(&text)
            .map_err(|error| ApiError::Unreadable { operation: operation.clone(), cause: error.to_string() })?;
        let (uid, version) = (scale.metadata.uid, Version::from(&*scale.metadata.resource_version));
        own_writes::record_write(&uid, &version, BackoffEffect::Reset);
        if target.source.arrives(&target.key(), &uid, &version, WATCH_WITHIN).await
            || self.refresh_object(target, &uid.to_string()).await
        {
            uncertain.resolved();
        }
        Ok(())
    }

    /// Reads an object into the cache after a write whose response does not contain it.
    ///
    /// Returns `false` if the read failed; the write stays marked as uncertain then.
    async fn refresh_object(&self, target: &Target<'_>, uid: &str) -> bool {
        match target.source.refresh_object(target.namespace, target.name, uid).await {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "the response to a write can't be deserialized: its namespace is listed before the next reconcile");
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
            done.uncertain.resolved();
        }
        Ok(())
    }

    /// Requests a token of a service account (`TokenRequest`) and returns the response.
    ///
    /// The server stores nothing, so the cache stays as it is.
    pub(crate) async fn token(&self, target: &Target<'_>, request: &Value) -> Result<Value, ApiError> {
        let (operation, Done { text, uncertain }) = self.create_subresource(target, "token", request).await?;
        uncertain.resolved();
        serde_json::from_str(&text).map_err(|error| ApiError::Unreadable { operation, cause: error.to_string() })
    }

    /// Posts to a subresource and returns the operation's name with the response.
    async fn create_subresource(
        &self,
        target: &Target<'_>,
        subresource: &str,
        body: &Value,
    ) -> Result<(Operation, Done), ApiError> {
        let operation = target.operation(format!("create {subresource} of"));
        let body = encode(&operation, body)?;
        let path = self.path(target, &format!("/{subresource}"), "");
        let sent = Some(("application/json", body));
        let done = self.send(target, &operation, Method::POST, &path, sent).await?;
        Ok((operation, done))
    }

    /// Deletes all objects of a namespace that match a label selector, then lists the namespace.
    ///
    /// The response does not name the deleted objects, so a list brings the cache up to date.
    ///
    /// Objects that were created between the decision and the request are deleted too: the request names no uid.
    pub(crate) async fn delete_collection(
        &self,
        target: &Target<'_>,
        labels: &str,
        policy: Option<Propagation>,
    ) -> Result<(), ApiError> {
        let operation = target.operation("deletecollection");
        let labels = url::escape(labels);
        let policy = policy.map_or(String::new(), |policy| format!("&propagationPolicy={}", policy.name()));
        let path = format!("{}?labelSelector={labels}{policy}", target.kind().path(target.namespace));
        let done = self.send(target, &operation, Method::DELETE, &path, None).await?;
        match target.source.refresh(&target.namespace.map(Arc::from)).await {
            Ok(()) => done.uncertain.resolved(),
            Err(error) => {
                tracing::debug!(%error, "the response does not say what was deleted: the namespace is listed before the next reconcile");
            }
        }
        Ok(())
    }

    /// Reads an object from the API server, past the cache.
    ///
    /// It is for kinds that a controller declares as live reads. The cache is neither asked nor changed.
    ///
    /// # Errors
    /// 404 if the object does not exist.
    pub(crate) async fn get<K: Object>(
        &self,
        client: &Client,
        cluster: &str,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Arc<K>, ApiError> {
        let operation = Operation::on_object("get", cluster, kind, key.clone());
        let path = format!("{}/{}", kind.path(key.namespace.as_deref()), url::escape(&key.name));
        let answer = transport::get(client, &operation, &path).await?;
        let unreadable = |cause: String| ApiError::Unreadable { operation: operation.clone(), cause };
        let stored = Stored::accept(kind, &answer).map_err(|error| unreadable(format!("{error}: {}", error.source)))?;
        stored.decode::<K>().map_err(|error| unreadable(format!("{error}: {}", error.source)))
    }

    /// Reads one object by a list with a field selector, and stores it in the cache.
    ///
    /// A controller that caches a kind has the permission to list it, but may lack `get`.
    ///
    /// Returns `None` if the object does not exist. The cache has the state that was read.
    pub(crate) async fn find<K: Object>(&self, target: &Target<'_>) -> Result<Option<Arc<K>>, ApiError> {
        #[derive(serde::Deserialize)]
        struct Found {
            items: Vec<Value>,
        }
        let operation = target.operation("list");
        let selector = url::escape(&format!("metadata.name={}", target.name));
        let path = format!("{}?fieldSelector={selector}", target.kind().path(target.namespace));
        let answer = transport::get(target.source.client(), &operation, &path).await?;
        let unreadable = |cause: String| ApiError::Unreadable { operation: operation.clone(), cause };
        let found: Found = serde_json::from_str(&answer).map_err(|error| unreadable(error.to_string()))?;
        let Some(item) = found.items.first() else { return Ok(None) };
        let text = typed(target.kind(), item).map_err(|error| unreadable(error.to_string()))?.to_string();
        store_read(target, &operation, &text).await.map(Some)
    }

    /// Deletes the object with this uid, and no later object of the same name.
    ///
    /// Succeeds if the object is gone already. `policy` is the propagation policy, `None` leaves it to the
    /// server. The store drops the object at once unless a finalizer or a grace period holds it. A Namespace is held until
    /// it is empty.
    ///
    /// # Errors
    /// 409 if another object has the name now: the uid is a precondition. A 404 that names the object is success; a 404
    /// for the whole kind is not, because then nothing is known about the object.
    pub(crate) async fn delete(
        &self,
        target: &Target<'_>,
        uid: &str,
        policy: Option<Propagation>,
    ) -> Result<(), ApiError> {
        let operation = target.operation("delete");
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        if let Some(policy) = policy {
            options["propagationPolicy"] = policy.name().into();
        }
        let body = encode(&operation, &options)?;
        let path = self.path(target, "", "");
        let answer = self.send(target, &operation, Method::DELETE, &path, Some(("application/json", body))).await;
        let gone = || Delta::Gone(target.key(), uid.into());
        let store = target.source.store();
        match answer {
            // The response is a `Status` if the object is gone. Otherwise it is the object, which may be terminating or gone.
            Ok(Done { text, uncertain }) => {
                let deletion = Deletion::from_response(target.kind(), &text).filter(|deletion| deletion.uid == *uid);
                if deletion.is_none_or(|deletion| deletion.stage == Stage::Ended) {
                    store.acknowledged(gone()).await;
                    uncertain.resolved();
                } else if let Ok(object) = target.source.accept(&text) {
                    store_written(target, &operation, object, uncertain, BackoffEffect::End).await;
                } else {
                    // It exists and can't be decoded, so the cache keeps its last readable state until the watch reports its end.
                    uncertain.resolved();
                }
                own_writes::record_delete(&uid.into());
                Ok(())
            }
            // The object is gone already. A 404 for the kind itself, for example of a CRD that is not installed yet, proves
            // nothing about the object.
            Err(error) if error.is_object_missing() => {
                store.acknowledged(gone()).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the path of an object or subresource, with the field manager and further options.
    fn path(&self, target: &Target<'_>, subresource: &str, options: &str) -> String {
        format!(
            "{}/{}{subresource}?fieldManager={}{options}",
            target.kind().path(target.namespace),
            url::escape(target.name),
            url::escape(&self.manager)
        )
    }
}

/// Returns the greatest effect of a patch on the key of the patched object. Fields beside the status that a patch of the
/// status names are ignored by the server.
fn effect_of_patch(subresource: &str, patch: &Value) -> BackoffEffect {
    match subresource {
        "" => own_writes::effect_of_body(patch),
        "/status" => BackoffEffect::Keep,
        _ => BackoffEffect::End,
    }
}

/// Removes an object from the cache whose last finalizer this write has removed: the API server deletes it with that, and
/// its response has the `resourceVersion` from before. Returns `false` if the object exists.
async fn remove_ended(target: &Target<'_>, text: &str) -> bool {
    let Some(Deletion { uid, stage: Stage::Ended }) = Deletion::from_response(target.kind(), text) else {
        return false;
    };
    own_writes::record_delete(&uid);
    target.source.store().acknowledged(Delta::Gone(target.key(), uid)).await;
    true
}

/// Stores the object in a response and returns it decoded.
async fn written<K: Readable>(
    target: &Target<'_>,
    operation: &Operation,
    done: Done,
    effect: BackoffEffect,
) -> Result<Arc<K>, ApiError> {
    let Done { text, uncertain } = done;
    let object = accept(target, operation, &text)?;
    if remove_ended(target, &text).await {
        uncertain.resolved();
    } else {
        store_written(target, operation, object.clone(), uncertain, effect).await;
    }
    decoded(target, operation, &object, &text)
}

/// Stores the object in a response, without decoding it for the caller.
async fn accepted(
    target: &Target<'_>,
    operation: &Operation,
    done: Done,
    effect: BackoffEffect,
) -> Result<(), ApiError> {
    let Done { text, uncertain } = done;
    let object = accept(target, operation, &text)?;
    if remove_ended(target, &text).await {
        uncertain.resolved();
    } else {
        store_written(target, operation, object, uncertain, effect).await;
    }
    Ok(())
}

/// Stores an object that was read, and returns it decoded.
async fn store_read<K: Readable>(target: &Target<'_>, operation: &Operation, text: &str) -> Result<Arc<K>, ApiError> {
    let object = accept(target, operation, text)?;
    target.source.store().acknowledged(Delta::Written(object.clone())).await;
    decoded(target, operation, &object, text)
}

/// Brings a response into the form of the cache, with the checks of the readers.
fn accept(target: &Target<'_>, operation: &Operation, text: &str) -> Result<Arc<Stored>, ApiError> {
    target.source.accept(text).map_err(|error| ApiError::Unreadable {
        operation: operation.into(),
        cause: format!("{error}: {}", error.source),
    })
}

/// Returns the written object as its type.
///
/// A cache that keeps the whole object shares its decoded value. Otherwise the response is decoded again,
/// because the caller gets all fields.
fn decoded<K: Readable>(
    target: &Target<'_>,
    operation: &Operation,
    object: &Arc<Stored>,
    text: &str,
) -> Result<Arc<K>, ApiError> {
    if target.source.is_whole() {
        let fits = decode_checked(object);
        return fits
            .ok_or_else(|| ApiError::Unreadable { operation: operation.into(), cause: "not of its kind".into() });
    }
    // The cache keeps only some fields, but the caller gets the whole object from the response.
    let decoded = Stored::accept(target.kind(), text).and_then(|whole| whole.decode::<K>());
    decoded.map_err(|error| ApiError::Unreadable {
        operation: operation.into(),
        cause: format!("{error}: {}", error.source),
    })
}

/// Brings a written state into the cache, and waits until it is there.
///
/// A state is ordered by its resourceVersion. If versions cannot be compared, storing the state might undo
/// a later one, so this waits for the watch instead, at most [`OPAQUE_WITHIN`].
///
/// A dry run returns an object without a `resourceVersion`. It is not stored.
async fn store_written(
    target: &Target<'_>,
    operation: &Operation,
    object: Arc<Stored>,
    uncertain: UncertainWrite,
    effect: BackoffEffect,
) {
    let meta = object.meta();
    own_writes::record_write(&meta.uid, &meta.resource_version, effect);
    if meta.revision().is_some() {
        target.source.store().acknowledged(Delta::Written(object)).await;
        uncertain.resolved();
    } else if meta.resource_version.is_none() {
        // A stored object has a version. This is the response to a dry run, which no watch reports.
        uncertain.resolved();
    } else if target.source.arrives(object.key(), &meta.uid, &meta.resource_version, OPAQUE_WITHIN).await {
        uncertain.resolved();
    } else {
        tracing::warn!(
            %operation,
            "the watch has not delivered this write within {OPAQUE_WITHIN:?}, and the versions of this API server do not compare: \
             its objects are listed before the next reconcile"
        );
    }
}

/// Returns the object as JSON with `apiVersion` and `kind`, which types derived elsewhere may lack.
fn typed<T: Serialize>(kind: &Kind, object: &T) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(object)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.clone().into());
    }
    Ok(value)
}

/// Serializes a body. Fails for maps whose keys are not strings.
fn encode(operation: &Operation, value: &Value) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|error| unsendable(operation, &error))
}

/// Returns the error for an object that cannot be serialized. Nothing was sent.
fn unsendable(operation: &Operation, error: &serde_json::Error) -> ApiError {
    ApiError::Unsendable { operation: operation.into(), cause: format!("the object cannot be encoded: {error}") }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use k8s_openapi::api::core::v1::{Namespace, Pod};
    use kube::client::Body;
    use tokio::{sync::watch, time::Instant};
    use tower::service_fn;

    use super::*;
    use crate::source::WatchConfig;

    #[tokio::test(start_paused = true)]
    async fn namespace_removed_during_wait_gets_no_write() {
        let n_requests = Arc::<AtomicUsize>::default();
        let counted = n_requests.clone();
        let server = service_fn(move |_request: http::Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, Infallible>(http::Response::new(Body::from(b"{}".to_vec()))) }
        });
        let source = Arc::new(Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default()));
        tokio::spawn(source.store().clone().write());
        let lease = |seconds| LeaseState::HeldUntil(Instant::now() + Duration::from_secs(seconds));
        let (election, state) = watch::channel(lease(2));
        let permit = WritePermit::from_lease(state, Duration::from_secs(5), Duration::from_secs(1));
        let writer = Writer::new("test").permit(permit.clone());
        let key = ObjectKey::new(Some("a"), "web");
        let target = Target { by: &key, source: &source, namespace: Some("a"), name: "web" };
        let patch = json!({ "metadata": { "labels": { "a": "b" } } });
        let remove = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            source.store().acknowledged(Delta::Close(Some("a".into()))).await;
            election.send_replace(lease(60));
        };
        let (written, ()) = tokio::join!(writer.patch_stored(&target, "", MERGE_PATCH, &patch), remove);
        assert!(matches!(written, Err(ApiError::NotFollowed { .. })), "{written:?}");
        assert_eq!(n_requests.load(Ordering::Relaxed), 0);
        assert!(permit.unresolved_until().is_none(), "nothing is on its way");
    }

    /// Returns a source of a server with this response to each request. Its cache has the object `x`.
    async fn answering<K: Readable>(response: &Value) -> Arc<Source> {
        let text = response.to_string();
        let server = service_fn(move |_request: http::Request<Body>| {
            let body = Body::from(text.clone().into_bytes());
            async { Ok::<_, Infallible>(http::Response::new(body)) }
        });
        let source =
            Arc::new(Source::new(Client::new(server, "default"), WatchConfig::new(Kind::of::<K>()), Arc::default()));
        let _readers = source.view::<K>();
        tokio::spawn(source.store().clone().write());
        let x =
            json!({ "metadata": { "name": "x", "uid": "1", "resourceVersion": "5" }, "spec": { "containers": [] } });
        let x = source.accept(&x.to_string()).unwrap();
        source.store().acknowledged(Delta::Replace(None, vec![x], "5".into())).await;
        source
    }

    /// Returns a terminating object with these further fields.
    fn terminating(meta: &Value, spec: &Value) -> Value {
        let time = "2026-01-01T00:00:00Z";
        let base = json!({ "name": "x", "uid": "1", "resourceVersion": "5", "deletionTimestamp": time });
        let mut object = json!({ "metadata": base, "spec": spec });
        for (name, value) in meta.as_object().into_iter().flatten() {
            object["metadata"][name] = value.clone();
        }
        object
    }

    /// Checks if the cache has the object after a delete with this response.
    async fn check_delete<K: Readable>(response: &Value, stays: bool) {
        let (source, key) = (answering::<K>(response).await, ObjectKey::new(None, "x"));
        let target = Target { by: &key, source: &source, namespace: None, name: "x" };
        Writer::new("test").delete(&target, "1", None).await.unwrap();
        assert_eq!(source.store().get(&key).is_some(), stays, "{response}");
        assert_eq!(source.store().tombstones(), usize::from(!stays), "{response}");
    }

    #[tokio::test]
    async fn deleted_object_stays_while_something_holds_it() {
        let containers = || json!({ "containers": [] });
        check_delete::<Pod>(&json!({ "kind": "Status", "metadata": {}, "status": "Success" }), false).await;
        check_delete::<Pod>(&terminating(&json!({ "deletionGracePeriodSeconds": 0 }), &containers()), false).await;
        check_delete::<Pod>(&terminating(&json!({ "deletionGracePeriodSeconds": 30 }), &containers()), true).await;
        check_delete::<Pod>(&terminating(&json!({ "finalizers": ["a/b"] }), &containers()), true).await;
        // It does not fit its type, and may do so again.
        check_delete::<Pod>(&terminating(&json!({ "finalizers": ["a/b"] }), &json!(false)), true).await;
        check_delete::<Pod>(&terminating(&json!({ "deletionGracePeriodSeconds": 0 }), &json!(false)), false).await;
        check_delete::<Namespace>(&terminating(&json!({}), &json!({ "finalizers": ["kubernetes"] })), true).await;
        check_delete::<Namespace>(&terminating(&json!({}), &json!({ "finalizers": [] })), false).await;
        // An object that is deleted at once may be returned without a mark.
        let last =
            json!({ "metadata": { "name": "x", "uid": "1", "resourceVersion": "9" }, "spec": { "containers": [] } });
        check_delete::<Pod>(&last, false).await;
    }

    #[tokio::test]
    async fn write_that_ends_object_removes_cached_state() {
        let key = ObjectKey::new(None, "x");
        let patch = json!({ "metadata": { "finalizers": [] } });
        for (meta, stays) in [(json!({}), false), (json!({ "finalizers": ["a/b"] }), true)] {
            let source = answering::<Pod>(&terminating(&meta, &json!({ "containers": [] }))).await;
            let target = Target { by: &key, source: &source, namespace: None, name: "x" };
            let writer = Writer::new("test");
            let written = writer.patch::<Pod>(&target, "", MERGE_PATCH, &patch).await.unwrap();
            assert_eq!(written.metadata.name.as_deref(), Some("x"), "the caller gets the last state");
            assert_eq!(source.store().get(&key).is_some(), stays);
            writer.patch_unreadable(&target, MERGE_PATCH, &patch).await.unwrap();
            assert_eq!(source.store().get(&key).is_some(), stays);
        }
        let source = answering::<Pod>(&terminating(&json!({}), &json!(false))).await;
        let target = Target { by: &key, source: &source, namespace: None, name: "x" };
        Writer::new("test").patch_unreadable(&target, MERGE_PATCH, &patch).await.unwrap();
        assert!(source.store().is_empty());
    }
}
