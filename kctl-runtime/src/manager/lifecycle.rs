//! Starts and stops the parts of a manager in order.
//!
//! Caches fill before the Lease is acquired, and workers start after it. At the end workers finish, events
//! are sent, and the Lease is released, so that the next leader starts at once:
//!
//! | Step of a stop | Longest time |
//! |---|---|
//! | queues close; running reconciles finish | the graceful timeout, 30 s by default |
//! | idle workers end | 1 s more |
//! | reconciles that still run are cancelled | at once |
//! | waiting events are sent | 5 s |
//! | writes without a response run out | within the graceful timeout, else the Lease expires instead |
//! | the Lease is released | the renew deadline, 10 s by default |
//!
//! A Lease that is lost ends everything at the first step, because another process works already.
//!
//! # Order of a start
//!
//! Everything below runs at the same time, and each step waits only for what it needs:
//!
//! ```text
//! servers, election, informers ── at once
//! controller without election:  handlers ─> own caches full ─> workers
//! controller with election:     own caches full ─> leadership ─> caches compared ─> handlers ─> workers
//! ```
//!
//! controller-runtime starts its groups one after another (`pkg/manager/internal.go`). There a controller waits for all
//! caches, here only for its own. So a kind without permission stops the controllers that read it and no other.

use std::{future::pending, pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Manager, Page, Registered, View,
    debug::Debug,
    handlers::{Handlers, enqueue_all},
    health::Health,
    lease::{Elector, End, Leadership},
    metrics::Scrape,
    serve::{self, Guard, Server},
    shards::serve_new_slots,
    unreadable,
};
use crate::{
    freezer,
    key::ObjectKey,
    queue::WorkQueue,
    reconcile::Env,
    shard::Tenures,
    watches::{CloseOnDrop, InformerHandle},
    writer::{RecorderView, WritePermit},
};

/// Time to send waiting events after all work is done; the rest is dropped.
///
/// The events about a failing stop are often the ones that people look for.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for idle workers to end, however short the graceful timeout is: they only need to be polled.
const IDLE_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of keys per controller that the error of a late stop names.
const BUSY_KEYS_MAX: usize = 3;

/// Time to release slots without in-flight writes, however short the graceful timeout is: two requests per Lease.
const SLOT_RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// A reconcile or handler that takes longer than this is logged.
const HUNG_RECONCILE_TIMEOUT: Duration = Duration::from_secs(60);

/// The error of a manager that ended on its own, or could not stop cleanly. End the process in each case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The Lease could not be renewed, or another process holds it. Work was cut off at once.
    #[error("this process ends because it lost its Lease: {0}")]
    LeaseLost(String),
    /// Reconciles were still running at the end of the graceful timeout and were cut off.
    ///
    /// The Lease is not released then, since a write may be in flight; it expires instead.
    #[error(
        "reconciles of {controllers} still ran {period:?} after the stop; `--graceful-shutdown-timeout` gives them longer"
    )]
    #[non_exhaustive]
    NotDrained {
        /// The graceful timeout.
        period: Duration,
        /// The controllers with running reconciles and their keys, such as `site (default/web), backup (default/db)`.
        controllers: String,
    },
    /// A task of the control loop ended that never should; the string names it. This is a bug.
    #[error("a part of the control loop ended: {0}")]
    Ended(String),
}

/// The tasks of a started manager. Dropping it cancels them all.
///
/// No task of it is detached, so that a test can run many managers in one process.
struct Running {
    /// Caches with their watches. They never end by themselves, and end with this value.
    informers: CloseOnDrop,
    _caches: Vec<InformerHandle>,
    /// Empty without leader election.
    election: JoinSet<End>,
    /// Stops the election: `true` to release the Lease, `false` to let it expire.
    resign: Option<oneshot::Sender<bool>>,
    /// Holds the slots of a sharded program; empty otherwise.
    shards: JoinSet<()>,
    /// Triggers the hand-over of all slots.
    leave: Option<oneshot::Sender<()>>,
    /// One task per controller, which holds its pool of workers.
    workers: JoinSet<()>,
    /// The senders of events, which outlive the workers by [`FLUSH_TIMEOUT`].
    recorders: JoinSet<()>,
    /// Servers and tasks of the user, which may end at any time.
    _background: JoinSet<()>,
}

impl Manager {
    /// Runs until `shutdown` is ready, then stops.
    ///
    /// From then on no new reconcile starts. Running ones get the graceful timeout to finish, and waiting events are
    /// sent within 5 s. The Lease is released if no write can be in flight.
    ///
    /// It does not handle signals: pass a future that is ready at SIGTERM.
    ///
    /// # Errors
    /// [`ManagerError`] if a task of the loop ended, the Lease was lost, or reconciles were cut off at the end
    /// of the graceful timeout. The process should exit then: after a lost Lease another process works.
    ///
    /// # Cancel safety
    /// Dropping the future cancels everything at once and leaves the Lease to expire.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), ManagerError> {
        let (graceful, stopping, permit) = (self.graceful_timeout, self.stopping.clone(), self.permit.clone());
        let queues: Vec<_> = self.controllers.iter().map(|c| (c.env.spec.name.clone(), c.queue.clone())).collect();
        self.metrics.register(|registry| registry.register_collector(Box::new(Scrape(self.view()))));
        let recorders = self.view().recorders().to_vec();
        let mut running = self.start();
        tokio::select! {
            biased;
            () = shutdown => {}
            error = running.wait_for_failure() => return Err(error),
        }
        stopping.send_replace(true);
        // A timeout beyond the range of the clock does not limit the wait.
        let limit = graceful.and_then(|period| Instant::now().checked_add(period));
        for (_, queue) in &queues {
            queue.shut_down();
        }
        // Slots are released one by one, each when its own reconciles have ended.
        if let Some(leave) = running.leave.take() {
            let _ended = leave.send(());
        }
        let drained = running.drain(graceful, &queues).await;
        if matches!(drained, Err(ManagerError::LeaseLost(_))) {
            return drained;
        }
        // Reconciles that still run are dropped. Their writes may be on the way, so the Lease is not released but expires.
        running.workers.shutdown().await;
        recorders.iter().for_each(RecorderView::close);
        let _late = timeout(FLUSH_TIMEOUT, async { while running.recorders.join_next().await.is_some() {} }).await;
        running.recorders.shutdown().await;
        if drained.is_ok() {
            running.hand_over_slots(limit).await;
        }
        if let Some(resign) = running.resign.take() {
            let quiet = drained.is_ok() && running.wait_for_writes(&permit, limit).await?;
            let _ended = resign.send(quiet);
            while running.election.join_next().await.is_some() {}
        }
        drained
    }

    /// Starts caches, controllers, servers and the election. Nothing here waits.
    ///
    /// Watches are opened in the background, and the first requests leave when the runtime polls them.
    fn start(mut self) -> Running {
        let (view, servers) = (self.view(), std::mem::take(&mut self.servers));
        self.elector = self.elector.map(|elector| elector.with_runtime(self.election_runtime.clone()));
        if let Some(coordinator) = &self.coordinator {
            let envs = self.controllers.iter().map(|controller| &controller.env);
            coordinator.limit_caches(envs, &self.whole);
        }
        self.informers.0.begin();
        let leadership = self.elector.as_ref().map(Elector::leadership);
        let tenures = self.coordinator.as_ref().map(|coordinator| coordinator.tenures().clone());
        let (mut slots, mut leave) = (JoinSet::new(), None);
        let mut guarded = None;
        if let (Some(coordinator), Some(leadership)) = (self.coordinator.take(), leadership.clone()) {
            let coordinator = coordinator.with_election_runtime(self.election_runtime.take());
            guarded = self.elector.take().map(|elector| coordinator.guard(elector));
            let (sender, stop) = oneshot::channel();
            leave = Some(sender);
            let envs = self.controllers.iter().map(|controller| controller.env.clone()).collect();
            let queues = self.controllers.iter().map(|controller| controller.queue.clone()).collect();
            freezer::spawn(&mut slots, coordinator.run(leadership, envs, queues, self.graceful_timeout, stop));
        }
        let mut workers = JoinSet::new();
        for controller in std::mem::take(&mut self.controllers) {
            let stopping = self.stopping.subscribe();
            freezer::spawn(&mut workers, run_controller(controller, stopping, leadership.clone(), tenures.clone()));
        }
        let (mut recorders, mut background) = (JoinSet::new(), JoinSet::new());
        for recorder in std::mem::take(&mut self.recorders) {
            freezer::spawn(&mut recorders, recorder);
        }
        for task in std::mem::take(&mut self.background) {
            freezer::spawn(&mut background, task);
        }
        for (listener, page) in servers {
            let server = self.server(page, &view, &mut background);
            freezer::spawn(&mut background, server.serve(listener));
        }
        let (mut election, mut resign) = (JoinSet::new(), None);
        // In a `JoinSet`, so that dropping the manager ends the election.
        if let Some(elector) = self.elector {
            let (sender, stop) = oneshot::channel();
            resign = Some(sender);
            freezer::spawn(&mut election, elector.run(async { stop.await.unwrap_or(false) }));
        } else if let Some(guarded) = guarded {
            let (sender, stop) = oneshot::channel();
            resign = Some(sender);
            freezer::spawn(&mut election, run_guarded(guarded, stop));
        }
        Running {
            informers: self.informers,
            _caches: self.caches,
            election,
            resign,
            shards: slots,
            leave,
            workers,
            recorders,
            _background: background,
        }
    }

    /// Returns the server of a page. A certificate that changes is read again in the background.
    fn server(&self, page: Page, view: &View, background: &mut JoinSet<()>) -> Server {
        let metrics = || serve::metrics(self.metrics.clone());
        let health = || Health::new(view.clone(), self.metrics.clone());
        match page {
            Page::Health => Server::open(serve::health(Arc::new(health()))),
            Page::Metrics => Server::open(metrics()),
            Page::Debug(hosts) => {
                let (app, view, health) = (self.name.clone(), view.clone(), health());
                let (history, clock) = (self.history.clone(), self.shared_options.clock());
                Server::open(Debug { app, view, health, history, clock, hosts }.pages())
            }
            Page::SecureMetrics(client, tls) => {
                let acceptor = tls.acceptor.clone();
                freezer::spawn(background, tls.refresh());
                let guard = Some(Arc::new(Guard::new(client)));
                Server { pages: metrics(), guard, tls: Some(acceptor) }
            }
        }
    }
}

/// Takes part in the election of the settings once its candidate is ready.
async fn run_guarded(elector: impl Future<Output = Elector> + Send, stop: oneshot::Receiver<bool>) -> End {
    let mut stop = std::pin::pin!(async { stop.await.unwrap_or(false) });
    let elector = tokio::select! {
        biased;
        _release = &mut stop => return End::Stopped,
        elector = elector => elector,
    };
    elector.run(stop).await
}

impl Running {
    /// Returns when a task ends that should not.
    ///
    /// Recorders are not among them: they end only when the manager stops. So do workers, unless they panic.
    async fn wait_for_failure(&mut self) -> ManagerError {
        tokio::select! {
            biased;
            Some(end) = self.election.join_next() => unexpected_end(end),
            Some(Err(panic)) = self.shards.join_next() => ManagerError::Ended(format!("the slots of this replica: {panic}")),
            cause = self.informers.0.wait_for_failure() => ManagerError::Ended(cause),
            Some(Err(panic)) = self.workers.join_next() => ManagerError::Ended(format!("the workers of a controller: {panic}")),
        }
    }

    /// Waits until no write can be in flight, and returns `true`.
    ///
    /// Returns `false` if that takes longer than the stop may. In-flight writes are writes of cancelled reconciles and
    /// writes without a response.
    ///
    /// The permit is closed first, so the set of in-flight writes can only shrink.
    async fn wait_for_writes(&mut self, permit: &WritePermit, limit: Option<Instant>) -> Result<bool, ManagerError> {
        permit.close();
        while let Some(over) = permit.unresolved_until() {
            if limit.is_some_and(|limit| limit < over) {
                tracing::warn!(
                    "a write may still be in flight after the stop: the Lease is not released and expires by itself"
                );
                return Ok(false);
            }
            tokio::select! {
                biased;
                Some(end) = self.election.join_next() => return Err(unexpected_end(end)),
                () = permit.wait_for_answers(over) => {}
            }
        }
        Ok(true)
    }

    /// Waits until all slots are handed over, at most until `limit`. Slots that are not are left to expire.
    async fn hand_over_slots(&mut self, limit: Option<Instant>) {
        let Self { shards, election, .. } = self;
        let limit = async {
            match limit {
                Some(limit) => sleep_until(limit.max(Instant::now() + SLOT_RELEASE_TIMEOUT)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = async { while shards.join_next().await.is_some() {} } => {}
            Some(_lost) = election.join_next() => {}
            () = limit => {}
        }
    }

    /// Waits for running reconciles, at most for the graceful timeout.
    ///
    /// # Errors
    /// [`ManagerError::NotDrained`] with the controllers that are still busy, or [`ManagerError::LeaseLost`] at once if
    /// the election ends first.
    async fn drain(
        &mut self,
        graceful: Option<Duration>,
        queues: &[(String, WorkQueue<ObjectKey>)],
    ) -> Result<(), ManagerError> {
        let Self { workers, election, .. } = self;
        let limit = async {
            match graceful {
                Some(period) => sleep(period).await,
                None => pending().await,
            }
        };
        let mut done = pin!(async { while workers.join_next().await.is_some() {} });
        tokio::select! {
            biased;
            () = &mut done => return Ok(()),
            Some(end) = election.join_next() => return Err(unexpected_end(end)),
            () = limit => {}
        }
        if busy_controllers(queues).is_empty() {
            tokio::select! {
                biased;
                () = done => return Ok(()),
                Some(end) = election.join_next() => return Err(unexpected_end(end)),
                () = sleep(IDLE_STOP_TIMEOUT) => {}
            }
        }
        Err(ManagerError::NotDrained { period: graceful.unwrap_or_default(), controllers: busy_controllers(queues) })
    }
}

/// Returns the controllers with running reconciles, separated by commas. Each one has its oldest keys, at most
/// [`BUSY_KEYS_MAX`].
fn busy_controllers(queues: &[(String, WorkQueue<ObjectKey>)]) -> String {
    let busy = queues.iter().filter(|(_, queue)| queue.processing() > 0).map(|(name, queue)| {
        let running = queue.processing_for(Duration::ZERO);
        let mut keys: Vec<String> = running.iter().take(BUSY_KEYS_MAX).map(|(key, _since)| key.to_string()).collect();
        let n_others = running.len().saturating_sub(BUSY_KEYS_MAX);
        keys.extend((n_others > 0).then(|| format!("{n_others} more")));
        format!("{name} ({})", keys.join(", "))
    });
    busy.collect::<Vec<_>>().join(", ")
}

fn unexpected_end(end: Result<End, JoinError>) -> ManagerError {
    match end {
        Ok(End::Lost(cause)) => ManagerError::LeaseLost(cause),
        Ok(End::Stopped | End::Released) => ManagerError::LeaseLost("it was stopped".into()),
        Err(error) => ManagerError::LeaseLost(error.to_string()),
    }
}

/// Runs one controller: caches, then leadership, then handlers and the initial objects, then workers.
///
/// A standby subscribes no handlers. Without workers its queue would grow by one key for each object that
/// ever existed.
///
/// Handlers are subscribed after the cache was compared with the newest state. So the first reconcile of a new leader
/// sees the last writes of the former one.
///
/// In a sharded program each replica leads, and `tenures` has the slots that it owns. Its queue takes no other keys.
async fn run_controller(
    controller: Registered,
    mut stopping: watch::Receiver<bool>,
    leadership: Option<Leadership>,
    tenures: Option<Arc<Tenures>>,
) {
    let Registered { env, queue, workers, handlers, history } = controller;
    // The subscriptions of the handlers end when `alive` is dropped.
    let (alive, mut tasks) = (Arc::new(()), JoinSet::new());
    log_sources(&env);
    let ready = async {
        if let Some(leadership) = &leadership {
            log_synced(&env).await;
            if !leadership.wait_until_leading().await {
                return false;
            }
            // The former leader wrote until its Lease ended. A cache without these writes would repeat them. Slots are
            // compared as they are gained.
            if tenures.is_none() {
                env.make_current().await;
            }
        }
        handlers.start(&alive, &mut tasks).await;
        env.gate.set_ready();
        true
    };
    let starts = tokio::select! {
        biased;
        _stopping = stopping.wait_for(|stopping| *stopping) => false,
        ready = ready => ready,
        () = report_hanging(&env, &queue, &handlers) => false,
    };
    let serve_slots = async {
        match &tenures {
            Some(tenures) => serve_new_slots(tenures, &env, &queue, &history).await,
            None => pending().await,
        }
    };
    let logged_workers = async {
        // With leader election, the caches were logged before this process led.
        match &leadership {
            Some(_) => env.complete().await,
            None => log_synced(&env).await,
        }
        log_workers(&env);
        pending::<()>().await;
    };
    if starts {
        tokio::select! {
            // Only `workers` ends, when the manager stops. They are polled in this order, so that a simulated run is
            // repeatable.
            biased;
            () = serve_slots => {}
            () = workers => {}
            () = logged_workers => {}
            () = resync(&env, &queue) => {}
            () = unreadable::report(&env, &queue) => {}
            () = report_hanging(&env, &queue, &handlers) => {}
        }
    }
}

/// Logs that a controller starts, with its kinds: one line, where controller-runtime logs one per source.
///
/// These lines have the words of controller-runtime (`pkg/internal/controller/controller.go`), so that a search finds
/// them. Without them a program whose caches can't fill looks like one that has nothing to do.
fn log_sources(env: &Env) {
    let mut kinds: Vec<String> = Vec::new();
    for source in env.caches() {
        let config = source.config();
        let on = if config.cluster.is_empty() { String::new() } else { format!(" on {}", config.cluster) };
        let kind = format!("{}{on}", config.kind);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    tracing::info!(controller = env.spec.name, source = kinds.join(", "), "Starting EventSource");
}

/// Waits for the caches of a controller, and logs the number of primaries in them.
async fn log_synced(env: &Env) {
    env.complete().await;
    tracing::info!(controller = env.spec.name, objects = env.primary.store().len(), "caches synced");
}

fn log_workers(env: &Env) {
    tracing::info!(controller = env.spec.name, worker_count = env.spec.concurrency, "Starting workers");
}

/// Logs once a minute the reconcile that has been running for longest, and handlers that hang.
///
/// A reconcile without a `timeout` may run indefinitely, and occupies one of the `concurrency` workers. Nothing else
/// shows that: the process is alive and ready.
async fn report_hanging(env: &Env, queue: &WorkQueue<ObjectKey>, handlers: &Handlers) {
    loop {
        tokio::time::sleep(HUNG_RECONCILE_TIMEOUT).await;
        report_hanging_handlers(handlers);
        let hanging = queue.processing_for(HUNG_RECONCILE_TIMEOUT);
        let Some((key, since)) = hanging.first() else { continue };
        let ends =
            if env.spec.timeout.is_none() { "; `timeout = \"…\"` in its declaration would end it" } else { "" };
        let others = match hanging.len() - 1 {
            0 => String::new(),
            n_others => format!(", and {n_others} more for a minute or longer"),
        };
        tracing::warn!(
            controller = env.spec.name,
            %key,
            "a reconcile has been running for {} s{others}{ends}",
            since.as_secs()
        );
    }
}

/// Logs handlers that have worked on one change for longer than [`HUNG_RECONCILE_TIMEOUT`].
fn report_hanging_handlers(handlers: &Handlers) {
    for spawned in handlers.spawned_handlers() {
        let Some(busy) = spawned.busy_for().filter(|busy| *busy >= HUNG_RECONCILE_TIMEOUT) else { continue };
        tracing::warn!(
            controller = spawned.controller(),
            relation = spawned.relation(),
            "`map` or `when` has been handling one change for {} s, and until it returns, no change of the kind enqueues anything for \
             this controller; move slow work to the reconcile function",
            busy.as_secs()
        );
    }
}

/// Queues every object once per period.
///
/// It is off unless the declaration has `resync`. controller-runtime replays its cache every 10 hours by default. A
/// level-triggered controller needs that only for things outside the cluster.
async fn resync(env: &Env, queue: &WorkQueue<ObjectKey>) {
    let Some(period) = env.spec.resync else { return pending().await };
    loop {
        tokio::time::sleep(period).await;
        enqueue_all(env, queue);
    }
}
