//! The server: one state behind a lock, and methods that read and change it without a request. Requests are handled in
//! `service.rs`.
//!
//! All requests and controllers take the same lock one after the other, and hold it without waiting for anything. This
//! makes each request atomic, and a simulation repeatable: the order in which tasks take the lock is the order of the
//! writes.

mod audit;
mod compress;
mod deadline;
mod pretty;
mod record;
mod run_controllers;
mod service;

use std::{io, path::Path, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::service::InProcess;
use crate::{
    bootstrap,
    clock::Clock,
    controllers::{self, ControllerOptions},
    faults::{Connection, Faulty},
    feature_gates::FeatureGates,
    kinds::core::namespace,
    request::{Caller, User},
    request_log::RequestRecord,
    state::State,
    status::GroupResource,
    store::{Change, Key},
    tokens,
};

/// An embedded API server. Clones share its state.
///
/// It is cheap to clone. When the last clone and the last service are dropped, the objects are
/// gone, unless they are kept in a folder.
#[derive(Clone)]
pub struct ApiServer {
    /// The lock is never held across an `await`.
    pub(crate) state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// Creates a server with the objects that every cluster has: namespaces, RBAC roles, priority classes, the
    /// objects of API priority and fairness, and the Service `kubernetes`. Its clock starts at 2026-01-01T00:00:00Z
    /// and advances with the clock of the tokio runtime.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// Creates a server like [`ApiServer::new`], with a seed for uids and generated names. The same seed gives the same
    /// sequence. Tests with other seeds reveal wrong assumptions about names and uids. Times do not depend on the seed.
    pub fn seeded(seed: u64) -> Self {
        Self::with(Clock::Simulated(Instant::now()), seed)
    }

    /// Creates a server that uses the clock of the machine. Uids and names then differ at each start. Use it for a
    /// server that people use, not for tests.
    pub fn on_system_time() -> Self {
        Self::with(Clock::System, jiff::Timestamp::now().as_nanosecond().unsigned_abs().try_into().unwrap_or(0))
    }

    /// Creates a server with the objects of a new cluster. The four namespaces get the revisions 2 to 5. All other
    /// objects are stored at the last of these, without events.
    fn with(clock: Clock, seed: u64) -> Self {
        let mut state = State::new(clock, seed);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({
                "kind": namespace::KIND.kind,
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "uid": state.store.rng.uid(),
                    "creationTimestamp": clock.seconds(),
                    "labels": { "kubernetes.io/metadata.name": name },
                    "managedFields": [{
                        "manager": "kube-apiserver",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "time": clock.seconds(),
                        "fieldsType": "FieldsV1",
                        "fieldsV1": { "f:metadata": { "f:labels": { ".": {}, "f:kubernetes.io/metadata.name": {} } } },
                    }],
                },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            state.store.put(&namespace::KIND.group_resource(), (String::new(), name.into()), namespace);
        }
        bootstrap::objects(&mut state.store);
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Creates an independent copy of the server, with the same objects and history. Later writes to one do not reach
    /// the other. The simulated clock of the copy starts again.
    ///
    /// `seed` decides the uids and names that the copy generates. Requests that are waiting for a webhook and watches
    /// remain with the original; controllers of the copy have to be started again.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        let state = self.state.lock().fork(Clock::Simulated(Instant::now()), seed);
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Returns a service that sends requests in the process, as a user with all permissions. It is in the group
    /// `system:masters`, which RBAC does not restrict.
    pub fn service(&self) -> InProcess {
        self.service_as(User::admin())
    }

    /// Returns a service that sends requests in the process as `user`. The server rejects requests that RBAC objects
    /// do not allow. The user is also in the group `system:authenticated`, as on every API server.
    pub fn service_as(&self, user: User) -> InProcess {
        self.service_of(Caller::from(user.with_group()))
    }

    /// Returns a service for one process under faults. RBAC applies as in [`service_as`](Self::service_as).
    pub fn faulty(&self, user: User, connection: &Connection) -> Faulty<InProcess> {
        Faulty::new(self.service_as(user), connection.clone())
    }

    /// Returns a service for a caller.
    pub(crate) fn service_of(&self, caller: Caller) -> InProcess {
        InProcess::new(self.state.clone(), caller)
    }

    /// Runs all controllers of kube-controller-manager that this server has (see [`Controller`](crate::Controller)),
    /// until the future is dropped.
    ///
    /// From this call on, new namespaces get the `ServiceAccount` `default` and, once the server listens, the
    /// `ConfigMap` `kube-root-ca.crt`. New pods get a service account and a volume with its token.
    ///
    /// Without them, owner references have no effect, and deleted Namespaces remain `Terminating`.
    pub fn controllers(&self) -> impl Future<Output = ()> + Send + 'static {
        self.controllers_with(&ControllerOptions::default())
    }

    /// Runs the selected controllers, until the future is dropped.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// use kctl_apiserver::{ApiServer, Controller, ControllerOptions};
    ///
    /// // Objects whose owners are gone stay, as on an API server without kube-controller-manager.
    /// let server = ApiServer::new();
    /// tokio::spawn(server.controllers_with(&ControllerOptions::default().without(Controller::GarbageCollector)));
    /// # })
    /// ```
    pub fn controllers_with(&self, options: &ControllerOptions) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.state.lock().enable(options);
        run_controllers::run(self.state.clone(), options.delay)
    }

    /// Switches feature gates, from the next request on. The gates of a server without this call are off.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// use kctl_apiserver::{ApiServer, FeatureGates};
    ///
    /// let server = ApiServer::new();
    /// server.set_feature_gates(FeatureGates::default().sharded_list_and_watch(true));
    /// # })
    /// ```
    pub fn set_feature_gates(&self, gates: FeatureGates) {
        self.state.lock().core.feature_gates = gates;
    }

    /// Returns the number of objects that the garbage collector still has to check. Once it is 0, a test can check the
    /// result of a deletion.
    pub fn pending(&self) -> usize {
        self.state.lock().pending()
    }

    /// Returns the answered requests, oldest first; at most the last 100,000 of them. A watch is recorded once, when it
    /// begins. Requests for documents, such as discovery, are not recorded.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.state.lock().core.requests.records().cloned().collect()
    }

    /// Adds an observer: `observer` is called for each answered request, in order, after the observers added before
    /// it. It must not use the server: the server's lock is held during the call.
    pub fn observe(&self, observer: impl Fn(&RequestRecord) + Send + 'static) {
        self.state.lock().core.requests.observe(observer);
    }

    /// Sets the observer of changes, which is called for each change of an object, in order. A later call replaces
    /// it. It must not use the server: the lock is held during the call.
    pub fn observe_changes(&self, observer: impl Fn(&Change) + Send + 'static) {
        self.state.lock().store.change_observer = Some(Box::new(observer));
    }

    /// Serves a webhook in this process: `handler` answers the requests to `host`, and no request reaches the
    /// network. A `clientConfig` with a `service` has the host `name.namespace.svc`, whether or not that Service
    /// exists. One with a `url` has the host of the URL, and its port if the URL names one.
    pub fn serve_webhook<F>(&self, host: &str, handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.state.lock().core.transport.serve(host, handler);
    }

    /// Returns the server's current time, which it writes into objects.
    pub fn now(&self) -> jiff::Timestamp {
        let clock = self.state.lock().store.clock;
        clock.now()
    }

    /// Returns the revision of the last write. It is 1 more for each write of an object. Requests that change nothing
    /// do not count.
    pub fn revision(&self) -> u64 {
        self.state.lock().store.revision
    }

    /// Returns the revision of the last write to a resource; 0 before the first one.
    pub fn revision_of(&self, group: &str, resource: &str) -> u64 {
        self.state.lock().store.table(&GroupResource::new(group, resource)).last_change()
    }

    /// Returns an object as it is stored, in the storage version; `None` if it does not exist. The group is empty for
    /// the core group, and the namespace for a cluster-scoped object. RBAC does not apply.
    pub fn object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key: Key = (namespace.into(), name.into());
        self.state.lock().store.get(&GroupResource::new(group, resource), &key)
    }

    /// Returns all objects of a resource as they are stored, sorted by namespace and name.
    pub fn objects(&self, group: &str, resource: &str) -> Vec<Arc<Value>> {
        let group_resource = GroupResource::new(group, resource);
        self.state.lock().store.table(&group_resource).values(None).map(|(_, object)| object).collect()
    }

    /// Returns the user of a service account token that this server issued with the `token` subresource. `None` if
    /// the token is not valid here, or if the account or the object it is bound to no longer exists.
    pub fn authenticate(&self, token: &str) -> Option<User> {
        self.caller_of_token(token).map(|caller| caller.user)
    }

    /// Returns the caller of a valid token, with the extra values of its claims; see [`Self::authenticate`].
    pub(crate) fn caller_of_token(&self, token: &str) -> Option<Caller> {
        let mut state = self.state.lock();
        let bearer = tokens::bearer(&state.store, &state.core.signer, token, &[]).ok()?;
        if let Some(secret) = &bearer.secret {
            controllers::tokens::label_used(&mut state.store, secret);
        }
        Some(bearer.caller)
    }

    /// Stores all objects and the signing key of tokens in a folder from now on. Objects that are in the folder
    /// already are loaded. If the server listens later, its certificates and port are kept there too, so that clients
    /// find it again after a restart.
    ///
    /// # Errors
    /// Fails if the folder can't be written, or if another server uses it.
    pub fn persist_in(&self, folder: &Path) -> io::Result<()> {
        self.state.lock().persist_in(folder)
    }

    /// Returns the folder of [`ApiServer::persist_in`].
    #[cfg(feature = "serve")]
    pub(crate) fn folder(&self) -> Option<std::path::PathBuf> {
        self.state.lock().store.folder().map(Path::to_owned)
    }

    /// Appends an audit event for each request to a file, one JSON document per line: `audit.k8s.io/v1` at level
    /// `Metadata`, with the times of the request and of its response, and the time between them as
    /// `apiserver.latency.k8s.io/total`. Rejected requests are included.
    ///
    /// # Errors
    /// Fails if the file can't be opened.
    pub fn audit_to(&self, file: &Path) -> io::Result<()> {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
        self.state.lock().core.audit = Some(file);
        Ok(())
    }

    /// Returns the response to a request that is rejected before its user is known, and audits it.
    #[cfg(feature = "serve")]
    pub(crate) fn reject<B>(
        &self,
        request: &http::Request<B>,
        error: &crate::status::StatusError,
    ) -> Response<crate::response::Body> {
        let mut state = self.state.lock();
        let id = audit::AuditId::for_request(&mut state.core, request.headers());
        audit::audit_other(&mut state, &audit::AuditedRequest::with_id(request, &id), None, error.code);
        id.add_to(pretty::pretty_print(request.uri(), request.headers(), crate::response::reject(error)))
    }

    /// Discards the history, as an etcd compaction does: older watches and the remaining pages of older lists fail
    /// with 410.
    pub fn compact(&self) {
        self.state.lock().store.compact();
    }
}

#[cfg(test)]
impl ApiServer {
    /// Sends a request of a unit test. Returns the code and the body, which is null if it is not JSON.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: impl Into<Bytes>,
    ) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let response = self.service().send_request(request, body).await;
        (response.status().as_u16(), serde_json::from_str(response.body()).unwrap_or_default())
    }

    /// Sends JSON: a merge patch if the method is `PATCH`.
    pub(crate) async fn send_json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.send(method, path, media_type, body.to_string()).await
    }

    /// Sends JSON as [`Self::send_json`], and returns the body of a successful response.
    pub(crate) async fn succeed(&self, method: &str, path: &str, body: &Value) -> Value {
        let (code, response) = self.send_json(method, path, body).await;
        assert!(code < 300, "{method} {path}: {code} {response}");
        response
    }

    /// Creates the CRD `foos.example.com`, whose objects may have any fields. Returns the path of the namespace `default`.
    pub(crate) async fn create_foo_crd(&self) -> &'static str {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
        let definition = json!({ "metadata": { "name": "foos.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "foos", "kind": "Foo" },
                "versions": [version] } });
        self.succeed("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        "/apis/example.com/v1/namespaces/default/foos"
    }
}

#[cfg(test)]
impl InProcess {
    /// Sends a request of a unit test. Returns the response with its whole body.
    pub(crate) async fn send_request(
        self,
        request: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Response<String> {
        use http_body_util::{BodyExt, Full};
        use tower::ServiceExt;

        let response = self.oneshot(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Response::from_parts(head, String::from_utf8_lossy(&bytes).into_owned())
    }
}
