//! One process of the app: it starts, crashes or is stopped, and starts again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use k8s_openapi::jiff::SignedDuration;
use kctl_apiserver::{
    User,
    faults::{Connection, RequestFault, RequestSummary, Rule, StaleState},
};
use kctl_runtime::{
    __private_0_1,
    manager::{Manager, View, lease::ElectionConfig, shards::ShardConfig},
    reconcile::Result,
};
use kube::Client;
use tokio::time::Instant;

use super::{
    checks::is_bookkeeping,
    leftover_tasks::CountedService,
    owners::LEASE_NAMESPACE,
    plan::{RESTART_DELAY, STALE_SERVER_DURATION, StaleServer},
    world::Shared,
};
use crate::app::{process_clock, user_of};

/// Longest wait before a process that ends by itself starts again. The wait doubles each time, like
/// a kubelet's backoff.
const RESTART_WAIT_MAX: Duration = Duration::from_secs(60);
/// Time between the first starts of replicas that share slots.
///
/// Processes that start together take their shares at once. With the delay, slots move during work, as with a
/// Deployment that is scaled up.
const JOIN_DELAY: Duration = Duration::from_secs(1);

/// Runs one replica indefinitely: a process that ends is started again.
///
/// After a crash the next process starts after [`RESTART_DELAY`], or after the time that the plan chose. A
/// process that ends by itself waits twice as long each time.
pub(super) async fn supervise(shared: Arc<Shared>, index: usize) {
    let mut wait = RESTART_DELAY;
    if shared.scenario.slots.is_some() {
        let n_earlier = u32::try_from(index).unwrap_or(u32::MAX);
        tokio::time::sleep(JOIN_DELAY * n_earlier).await;
    }
    for incarnation in 1_u32.. {
        match run_once(&shared, index, incarnation).await {
            End::Crashed => wait = wait_after_crash(&shared),
            End::Stopped(downtime) => {
                tokio::time::sleep(downtime).await;
                wait = RESTART_DELAY;
                continue;
            }
            End::ByItself => {}
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RESTART_WAIT_MAX);
    }
}

/// Returns the time after which a crashed process starts again: [`RESTART_DELAY`], or the time that the plan chose. A
/// process that misses a step starts only after it.
pub(super) fn wait_after_crash(shared: &Shared) -> Duration {
    let missed = shared.missed_steps.lock().1.map_or(Duration::ZERO, |end| end - Instant::now());
    shared.next_start.lock().take().unwrap_or(RESTART_DELAY).max(missed)
}

/// The way in which a process ended.
pub(super) enum End {
    Crashed,
    /// A fault stopped it. It starts again after this time.
    Stopped(Duration),
    ByItself,
}

/// Runs one process of a replica from its start to its end.
pub(super) async fn run_once(shared: &Arc<Shared>, index: usize, incarnation: u32) -> End {
    let name = format!("app-{index}.{incarnation}");
    let connection = shared.faults.connection(&name);
    let (stop, freezer) = shared.record_connection(index, &connection);
    // A frozen process can be killed, and notices a SIGTERM when it continues.
    let running = freezer.run(run(shared, index, incarnation, &connection, stop.notified()));
    let ended = tokio::select! {
        biased;
        () = connection.wait_until_crashed() => None,
        ended = running => Some(ended),
    };
    // The manager was dropped above. Its remaining tasks may still send requests: they must not reach the server.
    connection.disconnect();
    let how = match &ended {
        None => "has crashed".to_owned(),
        Some(Ok(())) => "has ended".into(),
        Some(Err(error)) => format!("has ended: {error}"),
    };
    let downtime = shared.record_end(index, &name, &how);
    shared.log(&name, how);
    match (ended, downtime) {
        (None, _) => End::Crashed,
        (Some(_), Some(downtime)) => End::Stopped(downtime),
        (Some(_), None) => End::ByItself,
    }
}

/// Runs one process until it is stopped or ends by itself, or its connection is cut.
///
/// Everything is created again, as in a real process: the app, its clients, caches and queues. Only the offset of the
/// machine's clock is kept.
async fn run(
    shared: &Arc<Shared>,
    index: usize,
    incarnation: u32,
    connection: &Connection,
    stop: impl Future<Output = ()> + Send,
) -> Result<()> {
    let name = connection.client().to_owned();
    // An additional replica of a rolling update has not crashed: the fault is for the replica that has.
    let is_surge = index >= shared.scenario.instances;
    let behind = if is_surge { None } else { shared.next_behind.lock().take() };
    if let Some(behind) = behind {
        shared.faults.add(server_behind(behind, &name));
    }
    let app = shared.scenario.new_app();
    let user = user_of(&app);
    let client = Client::new(CountedService::new(shared.server.faulty(user.clone(), connection)), "default");
    let lease = client.clone();
    let others = shared.others.iter().map(|(name, server)| {
        let service = server.faulty(user.clone(), &connection.to(name));
        (name.clone(), Client::new(CountedService::new(service), "default"))
    });
    let (now, skew) = (process_clock(shared.server.clone()), shared.clone());
    let offset = move || skew.clock_offsets.get(index).map_or(0, |seconds| seconds.load(Ordering::Relaxed));
    let clock = move || now() + SignedDuration::from_secs(offset());
    let manager = app.manager_at(client, others.collect(), |manager| {
        let manager = manager.clock(Arc::new(clock)).trace_seed(seed_of_process(index, incarnation));
        report_reconciles(shared, &name, manager)
    });
    let mut manager = manager.await?;
    if let Some(slots) = shared.scenario.slots {
        let config =
            ShardConfig::new(election(app.name(), &user, index, incarnation), slots.count(), slots.shard_by())?;
        manager = __private_0_1::shard_planted(manager, lease, config, shared.scenario.planted)?;
    } else if shared.scenario.elects() {
        let config = election(app.name(), &user, index, incarnation);
        let unfenced = shared.scenario.unfenced;
        manager = if unfenced { __private_0_1::elect_unfenced(manager, config)? } else { manager.elect(config)? };
    }
    shared.record_start(index, manager.view());
    shared.log(&name, "starts");
    Ok(manager.run(stop).await?)
}

/// Returns the fault of a server that is behind, stale or outdated, for a process that starts now.
fn server_behind(StaleServer { cluster, revision, is_outdated }: StaleServer, process: &str) -> Rule {
    let (own, until) = (process.to_owned(), Instant::now() + STALE_SERVER_DURATION);
    let reads = move |request: &RequestSummary| {
        request.may_be_cached || request.verb == "watch" || (is_outdated && request.verb == "list")
    };
    let here = move |request: &RequestSummary| {
        request.client == own && *request.server == *cluster && !is_bookkeeping(&request.group, &request.resource)
    };
    let (past, lag) = (StaleState::Revision(revision), STALE_SERVER_DURATION);
    let fault = if is_outdated { RequestFault::Outdated { past, lag } } else { RequestFault::Stale { past, lag } };
    Rule::request(fault, move |request| here(request) && reads(request) && Instant::now() < until)
}

/// Reports the start and end of each reconcile to the checkers.
fn report_reconciles(shared: &Arc<Shared>, name: &str, manager: Manager) -> Manager {
    let (begin, end, process) = (shared.clone(), shared.clone(), name.to_owned());
    let by = process.clone();
    manager
        .on_begin(Arc::new(move |controller, key, trace| begin.reconcile_begins(&process, controller, key, trace)))
        .on_end(Arc::new(move |report| end.reconcile_ends(&by, report)))
}

/// Returns the seed of a process, which is the same in each run. It decides the trace ids, which an app may write into
/// objects. For a replica it also decides the jitter of leader election, and of lists and watches.
fn seed_of_process(index: usize, incarnation: u32) -> u64 {
    u64::from(incarnation) << 8 | index as u64
}

/// Returns the settings of leader election. The same process gets the same jitter in each run.
fn election(app: &str, user: &User, index: usize, incarnation: u32) -> ElectionConfig {
    let identity = format!("{}-{index}.{incarnation}", user.name.rsplit(':').next().unwrap_or(app));
    let mut config = ElectionConfig::new(app, LEASE_NAMESPACE, &identity);
    config.seed = seed_of_process(index, incarnation);
    config
}

/// Returns `true` if a process has nothing to do.
///
/// A standby reconciles nothing, so it is idle once its caches are synced and their event backlog is empty.
pub(super) fn is_idle(view: &View) -> bool {
    let synced = view.sources().iter().all(|source| source.store().is_synced() && source.store().backlog() == 0);
    match view.leadership() {
        Some(leadership) if !leadership.is_leading() => synced,
        _ => view.is_idle(),
    }
}
