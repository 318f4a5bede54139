//! Simulated controllers of Deployments, `ReplicaSets` and Jobs: they create and delete Pods and write the status.
//!
//! They are an ordinary client, like the simulated kubelet, so they work with a real API server too. After each change
//! they list all objects and compare. Each list is the newest state, so no Pod is created twice.
//!
//! | kind | simulated | not simulated |
//! |---|---|---|
//! | Deployment | rolling update, `Recreate`, pause, revisions, progress deadline, conditions, adoption | Events |
//! | `ReplicaSet` | creation, deletion and adoption of Pods, status, `ReplicaFailure` | `minReadySeconds`, slow start |
//! | Job | indexes, policies, deadline, suspension, TTL, Pod tracking | backoff between failed Pods, adoption |
//!
//! A pass reads the lists once and may do several writes. Writes that fail because an object has
//! changed are not errors: the change causes another pass. If the API server rejects a write, for example because of
//! a quota, only that object is retried, with exponential backoff (`rejection.rs`).

mod deployment;
mod job;
mod optional;
mod ownership;
mod rejection;
mod replica_set;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        batch::v1::Job,
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kctl_apiserver::ApiServer;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectList, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::{sync::Mutex, time::Instant};

use self::rejection::{Rejections, Tally, Turn};
use crate::{clock::Clock, errors::describe, timeout::with_timeout};

/// The wait after a pass that failed as a whole.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of objects that [`Workloads::rejected_requests`] names.
const REJECTED_NAMED_MAX: usize = 20;

/// Simulates the controllers of Deployments, `ReplicaSets` and Jobs of one cluster.
///
/// The pods of a Job succeed one second after they start, unless the pod template selects another stage: see
/// [`Kubelet`](crate::Kubelet).
#[derive(Clone)]
pub struct Workloads {
    client: Client,
    clock: Clock,
    /// The `resourceVersion` up to which all objects were compared and nothing was missing.
    seen: Arc<AtomicU64>,
    /// Held during a pass, because two concurrent passes would both create a missing Pod. Contains the rejections of
    /// the last pass, so that each is logged once and retried with backoff.
    rejected: Arc<Mutex<Rejections>>,
}

impl std::fmt::Debug for Workloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workloads").finish_non_exhaustive()
    }
}

/// All objects at approximately the same time.
struct Lists {
    deployments: Vec<Deployment>,
    sets: Vec<ReplicaSet>,
    jobs: Vec<Job>,
    pods: Vec<Pod>,
    /// The `resourceVersion` from which each watch continues.
    versions: [String; 4],
}

/// The result of one pass.
struct Pass {
    lists: Lists,
    /// The changes of these writes cause the next pass.
    n_writes: usize,
    /// The first error of an object that this pass synced.
    failure: Option<kube::Error>,
    /// The time of the next retry of a rejected object.
    next_retry: Option<Instant>,
}

impl Workloads {
    /// Creates the controllers; they use `client`. Times in objects come from the machine's clock.
    ///
    /// Use it for an API server in another process; [`for_server`](Self::for_server) is for an embedded one. A request
    /// without a complete response within 30 s fails, and the next pass sends it again.
    pub fn new(client: Client) -> Self {
        Self::with_clock(with_timeout(client), Clock::Machine)
    }

    /// Creates the controllers for an embedded API server. They have all permissions there, and write the times of
    /// the server's clock, which a test can simulate.
    pub fn for_server(server: &ApiServer) -> Self {
        Self::with_clock(Client::new(server.service(), "default"), Clock::Server(server.clone()))
    }

    fn with_clock(client: Client, clock: Clock) -> Self {
        Self { client, clock, seen: Arc::default(), rejected: Arc::default() }
    }

    /// Returns the `resourceVersion` up to which the controllers have handled all changes.
    pub fn observed_revision(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Returns a line for each object for which the API server rejects a request, such as a `ReplicaSet` whose Pods exceed
    /// a quota, with the server's message. At most 20 objects are named, and none during a pass.
    ///
    /// Use it to explain why [`observed_revision`](Self::observed_revision) does not advance.
    pub fn rejected_requests(&self) -> Vec<String> {
        let Ok(rejected) = self.rejected.try_lock() else { return Vec::new() };
        let lines = rejected.iter().map(|(object, rejection)| format!("{object}: {}", rejection.message));
        lines.take(REJECTED_NAMED_MAX).collect()
    }

    /// Compares the state now and writes the missing changes. Returns `true` if nothing was missing. Does not depend on
    /// watch events, which may be late.
    ///
    /// # Errors
    /// Fails if a request fails or the API server rejects it.
    pub async fn is_settled(&self) -> kube::Result<bool> {
        let pass = self.sync_once(Turn::All).await?;
        match pass.failure {
            Some(error) => Err(error),
            None => Ok(pass.n_writes == 0),
        }
    }

    /// Runs until the future is dropped.
    pub async fn run(self) {
        loop {
            let begun = Instant::now();
            if let Err(error) = self.work().await {
                tracing::warn!(error = %describe(&error), "failed to sync Deployments, ReplicaSets and Jobs; retrying");
                tokio::time::sleep(RETRY_AFTER).await;
            }
            // A server that ends watches at once must not cause a busy loop.
            tokio::time::sleep_until(begun + RETRY_AFTER).await;
        }
    }

    /// Compares, then waits for changes, until one of the watches ends.
    async fn work(&self) -> kube::Result<()> {
        let mut pass = self.sync_once(Turn::All).await?;
        let [deployments, sets, jobs, pods] = &pass.lists.versions;
        let mut changes = stream::select_all([
            self.changes::<Deployment>(deployments).await?,
            self.changes::<ReplicaSet>(sets).await?,
            self.changes::<Job>(jobs).await?,
            self.changes::<Pod>(pods).await?,
        ]);
        loop {
            let mut turn = tokio::select! {
                change = changes.next() => match change.flatten() {
                    Some(change) => {
                        change?;
                        Turn::All
                    }
                    None => return Ok(()),
                },
                () = self.wait_for_deadline(&pass) => Turn::Due,
            };
            // Changes that have already been received are handled in the same pass.
            while let Some(change) = changes.next().now_or_never() {
                let Some(change) = change.flatten() else { return Ok(()) };
                change?;
                turn = Turn::All;
            }
            pass = self.sync_once(turn).await?;
        }
    }

    /// Waits until a deadline of a Job or Deployment, or until a rejected object is retried: no change announces them.
    async fn wait_for_deadline(&self, Pass { lists, next_retry, .. }: &Pass) {
        let now = self.clock.now();
        let jobs = lists.jobs.iter().filter_map(|job| job::time_until_deadline(job, now));
        let deployments =
            lists.deployments.iter().filter_map(|deployment| deployment::time_until_deadline(deployment, now));
        // Times in objects are whole seconds.
        let deadline = jobs.chain(deployments).min().map(|wait| Instant::now() + wait.max(Duration::from_secs(1)));
        match deadline.into_iter().chain(*next_retry).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Compares everything once. With [`Turn::Due`], rejected objects wait for their retries.
    ///
    /// Deployments come before their `ReplicaSets`, so that a new replica count takes effect in the next pass. A pass
    /// without a write records the oldest of the four list versions in `seen`: everything up to it is settled.
    async fn sync_once(&self, turn: Turn) -> kube::Result<Pass> {
        let mut before = self.rejected.lock().await;
        let lists = self.lists().await?;
        let mut tally = Tally::new(&before, turn);
        for deployment in lists.deployments.iter().filter(|object| is_alive(*object)) {
            if tally.takes(deployment) {
                tally.add(deployment, deployment::sync(self, deployment, &lists).await)?;
            }
        }
        for set in lists.sets.iter().filter(|object| is_alive(*object)) {
            if tally.takes(set) {
                tally.add(set, replica_set::sync(self, set, &lists).await)?;
            }
        }
        for job in &lists.jobs {
            if tally.takes(job) {
                tally.add(job, job::sync(self, job, &lists).await)?;
            }
        }
        for pod in job::orphans(&lists) {
            if tally.takes(pod) {
                tally.add(pod, job::release(self, pod).await.map(|_is_current| 1))?;
            }
        }
        let Tally { n_writes, failure, rejected, .. } = tally;
        let next_retry = rejected.values().map(|rejection| rejection.due).min();
        *before = rejected;
        if n_writes == 0 && next_retry.is_none() {
            let oldest = lists.versions.iter().filter_map(|version| version.parse().ok()).min();
            self.seen.store(oldest.unwrap_or(0), Ordering::Release);
        }
        Ok(Pass { lists, n_writes, failure, next_retry })
    }

    async fn lists(&self) -> kube::Result<Lists> {
        let (deployments, first) = self.list().await?;
        let (sets, second) = self.list().await?;
        let (jobs, third) = self.list().await?;
        let (pods, fourth) = self.list().await?;
        Ok(Lists { deployments, sets, jobs, pods, versions: [first, second, third, fourth] })
    }

    /// Lists the objects of a kind. Returns them with the `resourceVersion` of the list.
    async fn list<K>(&self) -> kube::Result<(Vec<K>, String)>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let ObjectList { items, metadata, .. } =
            Api::<K>::all(self.client.clone()).list(&ListParams::default()).await?;
        Ok((items, metadata.resource_version.unwrap_or_default()))
    }

    /// Returns a stream with one item per change of a kind, and `None` at the end of the watch. Without that, a merged
    /// stream would hide the end of one watch until all have ended.
    async fn changes<K>(&self, version: &str) -> kube::Result<stream::BoxStream<'static, Option<kube::Result<()>>>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let events = Api::<K>::all(self.client.clone()).watch(&WatchParams::default(), version).await?;
        let change = |event| async move {
            match event {
                Ok(WatchEvent::Bookmark(_)) => None,
                Ok(WatchEvent::Error(status)) => Some(Err(kube::Error::Api(status))),
                other => Some(other.map(drop)),
            }
        };
        Ok(events.filter_map(change).map(Some).chain(stream::once(std::future::ready(None))).boxed())
    }
}

/// Returns `true` if the object is not being deleted.
fn is_alive<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_none()
}

/// Returns the live objects that an object controls.
fn controlled_objects<'a, K: Resource>(by: &impl Resource, all: &'a [K]) -> Vec<&'a K> {
    all.iter().filter(|object| is_alive(*object) && is_controlled(*object, by)).collect()
}

fn is_controlled(object: &impl Resource, by: &impl Resource) -> bool {
    let uid = by.meta().uid.as_deref();
    let is_by = |owner: &OwnerReference| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid;
    object.owner_references().iter().any(is_by)
}

fn reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { block_owner_deletion: Some(true), ..owner.controller_owner_ref(&()).unwrap_or_default() }
}

/// Ignores 404 and 409: the object is gone or has changed since the list, and the next pass sees it.
fn ignore_outdated<T>(written: kube::Result<T>) -> kube::Result<()> {
    match written {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        written => written.map(drop),
    }
}
