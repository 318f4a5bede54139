//! The server: one locked state, and what can be asked of it without a request.

mod audit;
mod compress;
pub(crate) mod counts;
mod deadline;
mod pretty;
mod record;
pub(crate) mod respond;
mod service;

use std::{io, path::Path, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) use self::service::BODY_LEN_MAX;
pub use self::{
    record::{Change, RequestRecord},
    respond::Body,
    service::InProcess,
};
use crate::{
    bootstrap,
    clock::Clock,
    controllers::{self, ControllerOptions, Garbage},
    kubelet::Kubelet,
    request::{Caller, User},
    status::GroupResource,
    store::{Key, State},
    tokens,
    workloads::Workloads,
};

/// An API server. Clones share it.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) state: Arc<Mutex<State>>,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// A server without objects, except for those that every cluster has: namespaces, roles, priority classes, the levels of flow
    /// control and the service `kubernetes`. Its times start at
    /// 2026-01-01T00:00:00Z and pass as those of the tokio runtime do.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// The same with a seed for uids and generated names: one seed gives one sequence.
    pub fn seeded(seed: u64) -> Self {
        Self::with(Clock::Simulated(Instant::now()), seed)
    }

    /// A server whose times are those of the machine.
    pub fn on_system_time() -> Self {
        Self::with(Clock::System, jiff::Timestamp::now().as_nanosecond().unsigned_abs().try_into().unwrap_or(0))
    }

    fn with(clock: Clock, seed: u64) -> Self {
        let mut state = State::new(clock, seed);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "uid": state.chance.uid(),
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
            state.put(&GroupResource::new("", "namespaces"), (String::new(), name.into()), namespace);
        }
        bootstrap::objects(&mut state);
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A server with the same objects and the same history, which go ways of their own from here on. Its simulated time
    /// starts anew.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        let state = self.state.lock().fork(Clock::Simulated(Instant::now()), seed);
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The server as a service, for a user who may do everything.
    pub fn service(&self) -> InProcess {
        self.service_as(User::admin())
    }

    /// The server as a service for one user: what RBAC objects do not allow is refused. As on every server, the user is in the
    /// group `system:authenticated`, too.
    pub fn service_as(&self, user: User) -> InProcess {
        self.service_of(Caller::from(user.with_group()))
    }

    pub(crate) fn service_of(&self, caller: Caller) -> InProcess {
        InProcess::new(self.state.clone(), caller)
    }

    /// Runs all controllers of kube-controller-manager that this server has (see [`Controller`](crate::Controller)), for ever. From this
    /// call on new namespaces get their `ServiceAccount` `default` and, once the server listens, the `ConfigMap` `kube-root-ca.crt`; pods
    /// get an account and a volume with its token.
    pub fn controllers(&self) -> impl Future<Output = ()> + Send + 'static {
        self.controllers_with(&ControllerOptions::default())
    }

    /// Runs the selected controllers, for ever.
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
        Garbage::new(self.state.clone()).run(options.delay)
    }

    /// A simulated kubelet on this server: `run` it.
    pub fn kubelet(&self) -> Kubelet {
        let clock = self.state.lock().clock;
        Kubelet::on(kube::Client::new(self.service(), "default"), "kctl-node", clock)
    }

    /// Simulated controllers of Deployments, `ReplicaSets` and Jobs on this server: `run` them.
    pub fn workloads(&self) -> Workloads {
        let clock = self.state.lock().clock;
        Workloads::on(kube::Client::new(self.service(), "default"), clock)
    }

    /// How many objects the garbage collector has still to look at.
    pub fn pending(&self) -> usize {
        controllers::pending(&self.state)
    }

    /// The requests that were answered, the oldest first; the last hundred thousand of them.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.state.lock().requests.iter().cloned().collect()
    }

    /// Calls this for each request that is answered, in order, after the observers that were added before. It must not use the
    /// server.
    pub fn observe(&self, observer: impl Fn(&RequestRecord) + Send + 'static) {
        self.state.lock().observers.push(Box::new(observer));
    }

    /// Calls this for each change of an object, in order. It must not use the server.
    pub fn observe_changes(&self, observer: impl Fn(&Change) + Send + 'static) {
        self.state.lock().change_observer = Some(Box::new(observer));
    }

    /// Serves a webhook in this process: requests to this host are answered by the handler instead of going out to a
    /// network. A `clientConfig` with a service has the host `name.namespace.svc`, whether the service exists or not;
    /// one with an URL has the host of the URL, with its port where it names one.
    pub fn serve_webhook<F>(&self, host: &str, handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.state.lock().transport.serve(host, handler);
    }

    /// The time that the server writes into objects.
    pub fn now(&self) -> jiff::Timestamp {
        let clock = self.state.lock().clock;
        clock.now()
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// The revision of the last write to a resource; 0 before the first.
    pub fn revision_of(&self, group: &str, resource: &str) -> u64 {
        self.state.lock().table(&GroupResource::new(group, resource)).last_change()
    }

    /// An object as it is stored.
    pub fn object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key: Key = (namespace.into(), name.into());
        self.state.lock().get(&GroupResource::new(group, resource), &key)
    }

    /// All objects of a resource as they are stored, by namespace and name.
    pub fn objects(&self, group: &str, resource: &str) -> Vec<Arc<Value>> {
        let of = GroupResource::new(group, resource);
        self.state.lock().table(&of).values(None).map(|(_, object)| object).collect()
    }

    /// Whose token this is: of a service account, by its `token` subresource. It is for this server, and neither the account
    /// nor what the token is bound to is gone.
    pub fn user_of_token(&self, token: &str) -> Option<User> {
        self.caller_of_token(token).map(|caller| caller.user)
    }

    /// The same with what the token says besides.
    pub(crate) fn caller_of_token(&self, token: &str) -> Option<Caller> {
        let mut state = self.state.lock();
        let bearer = tokens::bearer(&state, token, &[]).ok()?;
        if let Some(secret) = &bearer.secret {
            controllers::tokens::label_used(&mut state, secret);
        }
        Some(bearer.caller)
    }

    /// Keeps all objects in a folder from now on, and the key of tokens; what is in it already is served. A server that listens
    /// after that keeps its certificates and its port there, too: clients find it again.
    ///
    /// # Errors
    /// When the folder cannot be written, or another server uses it.
    pub fn keep_in(&self, folder: &Path) -> io::Result<()> {
        self.state.lock().keep_in(folder)
    }

    /// The folder that objects are kept in.
    #[cfg(feature = "serve")]
    pub(crate) fn folder(&self) -> Option<std::path::PathBuf> {
        self.state.lock().folder().map(Path::to_owned)
    }

    /// Appends a line of JSON for each request to a file: an event of `audit.k8s.io/v1` at level Metadata, with when the request
    /// came, when its answer began, and the time between the two as `apiserver.latency.k8s.io/total`. Refused ones are there, too.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn audit_to(&self, file: &Path) -> io::Result<()> {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
        self.state.lock().audit = Some(file);
        Ok(())
    }

    /// Refuses a request before anybody knows whose it is.
    #[cfg(feature = "serve")]
    pub(crate) fn refuse<B>(&self, request: &http::Request<B>, refusal: &crate::status::Refusal) -> Response<Body> {
        let mut state = self.state.lock();
        let id = audit::AuditId::of(&mut state, request.headers());
        audit::audit_other(&mut state, &audit::Asked::with_id(request, &id), None, refusal.code);
        id.on(pretty::indented(request.uri(), request.headers(), respond::refuse(refusal)))
    }

    /// Forgets the history, as a compaction of etcd does: watches from before and pages of old lists get 410.
    pub fn compact(&self) {
        self.state.lock().compact();
    }
}
