//! An app that runs on embedded API servers.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kctl_apiserver::{ApiServer, User};
use kctl_runtime::{
    manager::{Manager, View},
    manifest::RbacOptions,
    reconcile::{Error, Result},
};
use kube::Client;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tower::Layer;

#[cfg(not(feature = "webhook"))]
use super::files::install;
use super::{
    App, Permissions,
    files::{FromFile, apply, create_namespaces},
    hot_loops::HotLoops,
    reconciles::Reconciles,
    required_kinds::{Remedy, check_kinds},
    simulation::Simulation,
};
use crate::rejection::Rejections;

/// Interval between two checks for idleness.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of consecutive idle checks after which the app counts as idle: an event may be on its way between server and
/// cache.
const IDLE_POLLS: u32 = 5;
/// Seed of trace ids, so that the log is the same in each run.
const TRACE_SEED: u64 = 1;

/// Returns the service account that the generated manifests use, as which the app runs.
pub(crate) fn user_of(app: &App) -> User {
    User::service_account("default", &app.name)
}

/// Returns the clock of a process: the server's clock, except that no two calls return the same time.
///
/// Requests take no simulated time. With a clock that does not advance, the second reconcile would write the same time
/// as the first. That write changes nothing, so a hot loop of a cluster would end here unnoticed. The first call at a
/// moment returns its time.
pub(crate) fn process_clock(server: ApiServer) -> impl Fn() -> Timestamp + Send + Sync {
    increasing(move || server.now())
}

fn increasing(now: impl Fn() -> Timestamp + Send + Sync) -> impl Fn() -> Timestamp + Send + Sync {
    let last = Mutex::new(Timestamp::MIN);
    move || {
        let mut last = last.lock();
        let next = last.checked_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MAX);
        *last = next.max(now());
        *last
    }
}

/// Installs the CRDs and the app's role on a server, with the namespaces of the role. Returns a client of
/// the app, and a record of its rejected requests.
async fn as_role(server: &ApiServer, app: &App, role: &Permissions, cluster: &str) -> Result<(Client, Rejections)> {
    let permissions = role.get(cluster).cloned().unwrap_or_default();
    let names = RbacOptions::new(app.name.clone(), "default");
    create_namespaces(&Client::new(server.service(), "default"), &permissions).await?;
    #[cfg(feature = "webhook")]
    app.install_on(server, &permissions, &names, cluster).await?;
    #[cfg(not(feature = "webhook"))]
    install(&Client::new(server.service(), "default"), &app.definitions()?, &permissions, &names).await?;
    let rejections = Rejections::new(permissions);
    Ok((Client::new(rejections.layer(server.service_as(user_of(app))), "default"), rejections))
}

/// Runs the controllers until one of them is in a hot loop. Otherwise simulated time would not advance, and the rest of
/// the test would hang.
async fn run_until_hot(manager: Manager, hot_loops: HotLoops) {
    tokio::select! {
        biased;
        hot_loop = hot_loops.wait_for_loop() => tracing::error!("{hot_loop}"),
        ended = manager.run(std::future::pending()) => {
            if let Err(error) = ended {
                tracing::error!(%error, "the controllers no longer run");
            }
        }
    }
}

/// A cluster in addition to the one that the app is started against.
pub(crate) struct OtherCluster {
    pub(crate) name: String,
    /// A client with all permissions.
    pub(crate) client: Client,
    pub(crate) server: ApiServer,
    simulation: Simulation,
}

/// An app that runs on embedded API servers: the core of `dev`, `TestServer` and role tests.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    simulation: Simulation,
    /// A client with all permissions, for the files of `dev` and the steps of a test.
    pub(crate) client: Client,
    pub(crate) others: Vec<OtherCluster>,
    /// The running manager: its caches and work queues.
    pub(crate) view: View,
    /// Requests that the app's role did not allow, on each cluster.
    pub(crate) rejections: Vec<Rejections>,
    /// Detects reconciles that repeat while simulated time does not advance.
    hot_loops: HotLoops,
    reconciles: Reconciles,
    _tasks: JoinSet<()>,
}

impl World {
    /// Starts a server, installs the CRDs and the generated role, and runs the controllers.
    pub(crate) async fn start(app: &App) -> Result<Self> {
        Self::with_role(app, &app.permissions()).await
    }

    /// Starts like [`start`](Self::start), and applies objects before the controllers run.
    pub(crate) async fn start_with(app: &App, objects: &[FromFile]) -> Result<Self> {
        let (server, others) = (ApiServer::new(), other_servers(app, ApiServer::seeded));
        let world = Self::with_servers(server, others, app, &app.permissions(), objects, |manager| manager).await?;
        world.check_kinds(app, Remedy::StartWith).await?;
        Ok(world)
    }

    /// Starts with another role, by cluster. The app is never an administrator: a request that the
    /// role does not allow gets 403.
    pub(crate) async fn with_role(app: &App, role: &Permissions) -> Result<Self> {
        let (server, others) = (ApiServer::new(), other_servers(app, ApiServer::seeded));
        let world = Self::with_servers(server, others, app, role, &[], |manager| manager).await?;
        world.check_kinds(app, Remedy::StartWith).await?;
        Ok(world)
    }

    /// Fails if a server lacks a kind of the app.
    pub(super) async fn check_kinds(&self, app: &App, remedy: Remedy) -> Result<()> {
        let client_of = |cluster: &str| {
            let other = self.others.iter().find(|other| other.name == cluster);
            other.map_or(&self.client, |other| &other.client).clone()
        };
        check_kinds(app, client_of, &[], remedy).await
    }

    /// Starts on existing servers, with objects that are applied before the controllers run.
    pub(super) async fn with_servers(
        server: ApiServer,
        servers: Vec<(String, ApiServer)>,
        app: &App,
        role: &Permissions,
        objects: &[FromFile],
        set_up: impl FnOnce(Manager) -> Manager + Send,
    ) -> Result<Self> {
        let client = Client::new(server.service(), "default");
        let mut tasks = JoinSet::new();
        let simulation = Simulation::of_pods(&server, &mut tasks);
        let clock = process_clock(server.clone());
        let (own, rejections) = as_role(&server, app, role, "").await?;
        apply(&client, objects).await?;
        let mut rejections = vec![rejections];
        let mut clusters = Vec::new();
        let mut others = Vec::new();
        for (name, other) in servers {
            let (there, rejected) = as_role(&other, app, role, &name).await?;
            rejections.push(rejected);
            clusters.push((name.clone(), there));
            others.push(OtherCluster {
                name,
                client: Client::new(other.service(), "default"),
                simulation: Simulation::of_workloads(&other, &mut tasks),
                server: other,
            });
        }
        let hot_loops = HotLoops::new(&user_of(app).name);
        for server in std::iter::once(&server).chain(others.iter().map(|other| &other.server)) {
            let counts = hot_loops.clone();
            server.observe(move |request| counts.record_request(request));
        }
        let (begins, ended) = (hot_loops.clone(), hot_loops.clone());
        let reconciles = Reconciles::default();
        let records = reconciles.clone();
        let repeatable = |manager: Manager| {
            let manager = manager.clock(Arc::new(clock)).trace_seed(TRACE_SEED);
            manager.on_begin(Arc::new(move |controller, key, trace| begins.begins(controller, key, trace))).on_end(
                Arc::new(move |report| {
                    records.record_end(report);
                    ended.record_end(report);
                }),
            )
        };
        let manager = set_up(app.manager_at(own, clusters, repeatable).await?);
        let view = manager.view();
        tasks.spawn(run_until_hot(manager, hot_loops.clone()));
        Ok(Self { server, simulation, client, others, view, rejections, hot_loops, reconciles, _tasks: tasks })
    }

    /// Starts the simulated controllers of Deployments, `ReplicaSets` and Jobs.
    #[cfg(feature = "dev")]
    pub(crate) fn add_workloads(&self) {
        self.simulation.add_workloads();
    }

    /// Waits until nothing is left to do: the work queues are empty, the caches have seen all changes, and
    /// the simulated controllers rest. [`IDLE_POLLS`] checks in a row have to agree.
    ///
    /// # Errors
    /// Something is left after `timeout`, or a hot loop kept simulated time from advancing.
    pub(crate) async fn idle(&self, timeout: Duration) -> Result<()> {
        self.reconciles.restart();
        let quiet = poll_until(|| self.view.is_idle() && self.simulations().all(Simulation::is_idle));
        tokio::select! {
            biased;
            hot_loop = self.hot_loops.wait_for_loop() => Err(Error::from(hot_loop)),
            timed = tokio::time::timeout(timeout, quiet) => {
                timed.map_err(|_elapsed| self.unfinished_error(format!("not idle after {timeout:?}")))
            }
        }
    }

    /// Waits until nothing is left but retries of requests that the API server rejected as invalid, and returns an error
    /// that names their keys. [`IDLE_POLLS`] checks in a row have to agree.
    ///
    /// On a cluster such a key is retried with backoff, because other programs may change what the request depends on. Here
    /// nothing else is going to happen within `timeout`. If another key is due before that, its reconcile may help.
    #[cfg(feature = "dev")]
    pub(super) async fn wait_for_invalid(&self, timeout: Duration) -> Error {
        poll_until(|| {
            self.reconciles.has_invalid_keys()
                && self.view.is_idle_except(timeout, |controller, key| self.reconciles.is_invalid(controller, key))
                && self.simulations().all(Simulation::is_idle)
        })
        .await;
        self.unfinished_error(
            "the API server rejects requests as invalid, and nothing is left that could change that".into(),
        )
    }

    fn simulations(&self) -> impl Iterator<Item = &Simulation> {
        std::iter::once(&self.simulation).chain(self.others.iter().map(|other| &other.simulation))
    }

    /// Fails if a key was given up, after a terminal error or too many failures, and has not run since.
    #[cfg(feature = "dev")]
    pub(super) fn check_given_up(&self) -> Result<()> {
        let lines = self.reconciles.given_up_keys();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Error::from(format!("reconciles failed and are not retried\n  {}", lines.join("\n  "))))
    }

    /// Returns an error with this first line, and a line for each part of the app that is still running or waiting.
    fn unfinished_error(&self, first: String) -> Error {
        let mut lines = vec![first];
        lines.extend(self.view.unfinished_work());
        lines.extend(self.simulations().flat_map(Simulation::unfinished_work));
        if lines.len() == 1 {
            lines.push("pods and other objects are still being simulated".into());
        }
        self.reconciles.add_busy_lines(&mut lines);
        Error::from(lines.join("\n  "))
    }
}

/// Waits until [`IDLE_POLLS`] checks in a row return `true`.
async fn poll_until(is_idle: impl Fn() -> bool) {
    let mut quiet = 0;
    while quiet < IDLE_POLLS {
        tokio::time::sleep(IDLE_POLL_INTERVAL).await;
        quiet = if is_idle() { quiet + 1 } else { 0 };
    }
}

/// Creates a server for each other cluster. Different seeds give them different uids, as in real
/// clusters.
pub(super) fn other_servers(app: &App, server: impl Fn(u64) -> ApiServer) -> Vec<(String, ApiServer)> {
    app.clusters.iter().zip(1..).map(|((name, _), seed)| (name.clone(), server(seed))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn clock_of_process_always_advances() {
        let micros = Arc::new(AtomicI64::new(1_000));
        let server = micros.clone();
        let clock = increasing(move || Timestamp::from_microsecond(server.load(Ordering::Relaxed)).unwrap());
        let calls = || [clock(), clock()].map(Timestamp::as_microsecond);
        assert_eq!(calls(), [1_000, 1_001]);
        micros.store(2_000, Ordering::Relaxed);
        assert_eq!(calls(), [2_000, 2_001], "the first call at a moment has its time");
    }
}
