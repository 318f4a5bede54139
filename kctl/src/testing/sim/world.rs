//! One run: API servers, the processes of the app, the faults, and the user, under simulated time.

mod describe;
mod external_calls;
mod freeze;
mod inject;
mod jitter;
mod observe;
mod processes;
mod rolling_update;
mod servers;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize},
    },
    time::Duration,
};

use kctl_apiserver::{ApiServer, ControllerOptions, FeatureGates, faults::Faults};
use kctl_runtime::{
    key::ObjectKey,
    reconcile::Result,
    shard::ShardBy,
    trace,
    worker::{Outcome, Report},
};
use kube::Client;
use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

pub use self::external_calls::external;
pub(super) use self::servers::Servers;
use self::{external_calls::ExternalFaults, processes::Process};
use super::{
    checks::{Checks, End, SharedChecks, Violation},
    fault_targets::FaultTargets,
    owners::Owners,
    ownership::Ownership,
    panics,
    plan::{Fault, FaultPoints, History, StaleServer},
    process::supervise,
    progress,
    scenario::{Scenario, ServerSelection, Simulated},
    timed::TimeDependent,
    trace::{Line, Trace},
};
use crate::{
    App,
    app::{self, FromFile, Simulation},
};

/// Delay of the garbage collector. Without it, a controller that does not know yet that its primary is gone would
/// create the same object again. It would do so without end, because simulated time does not advance.
const GC_DELAY: Duration = Duration::from_millis(100);

/// State that everything in a run shares: the server's observers, the processes and the faults.
///
/// All of it runs on one thread under paused time, so that a seed gives one order of events. The locks are
/// held for a few lines only, and never across an `.await`.
pub(super) struct Shared {
    pub(super) scenario: Scenario,
    pub(super) server: ApiServer,
    /// The API servers of the other clusters, by name.
    pub(super) others: Vec<(String, ApiServer)>,
    pub(super) faults: Faults,
    /// The requests and events that the faults of the plan hit.
    pub(super) fault_targets: FaultTargets,
    /// The faults of calls of systems outside of the cluster.
    externals: Mutex<ExternalFaults>,
    /// The server that is behind at the next start of a process.
    pub(super) next_behind: Arc<Mutex<Option<StaleServer>>>,
    /// The downtime of the process that crashes next, if it is not [`RESTART_DELAY`](super::plan::RESTART_DELAY).
    pub(super) next_start: Arc<Mutex<Option<Duration>>>,
    /// The numbers of the steps during which all processes are down, and the end of that time.
    pub(super) missed_steps: Mutex<(BTreeSet<usize>, Option<Instant>)>,
    /// End of a partition or a freeze, which hold back what the app would see. Until then the state has not settled.
    held_until: Arc<Mutex<Option<Instant>>>,
    /// Offset in seconds of each instance's clock. It belongs to the machine, so a restart does not correct it.
    pub(super) clock_offsets: Vec<AtomicI64>,
    /// Checkers of invariants, which see each change, request and reconcile.
    pub(super) checks: SharedChecks,
    /// Wakes the run at the first finding of a checker.
    found: Notify,
    /// The timeline that a report prints.
    trace: Arc<Mutex<Trace>>,
    /// Places at which later runs can inject a fault, as seen in this one.
    points: Mutex<FaultPoints>,
    /// The replicas by index; the value changes when one ends and starts again.
    processes: Mutex<BTreeMap<usize, Process>>,
    /// The number of processes of additional replicas so far. The lock is held during a rolling update.
    surge_incarnations: tokio::sync::Mutex<u32>,
    /// The number of rolling updates of the plan that have not ended.
    pending_updates: AtomicUsize,
}

/// A run that is set up. Dropping it aborts the processes, the simulated controllers and the faults.
pub(super) struct World {
    pub(super) shared: Arc<Shared>,
    /// A client of the main server with all permissions, for the user who takes the steps.
    pub(super) client: Client,
    /// The objects of the scenario, which the run applies first.
    pub(super) objects: Vec<FromFile>,
    /// Simulated kubelets and controllers.
    simulated: Vec<Simulation>,
    /// The faults that happen at a time, from their beginning to their end.
    timed_faults: Vec<Range<Instant>>,
    /// The processes, the simulated controllers, and the faults that happen at a time.
    pub(super) tasks: JoinSet<()>,
}

impl World {
    /// Starts the servers, the processes of the app, and the faults of a plan.
    pub(super) async fn start(scenario: &Scenario, servers: &Servers, seed: u64, plan: &[Fault]) -> Result<Self> {
        let app = scenario.new_app();
        let mut objects = Vec::new();
        app::parse(&scenario.objects, "the objects of the scenario", &mut objects)?;
        let server = servers.own.fork(seed);
        let selects = scenario.slots.is_some_and(|slots| slots.shard_by() == ShardBy::NamespaceRange)
            && scenario.server_selection == ServerSelection::Available;
        server.set_feature_gates(FeatureGates::default().sharded_list_and_watch(selects));
        let client = Client::new(server.service(), "default");
        let mut others = Vec::new();
        let mut tasks = JoinSet::new();
        // Service accounts and root certificates of namespaces don't concern an app, and their writes would shift every revision.
        let controllers = ControllerOptions::default().without_service_accounts().after(GC_DELAY);
        tasks.spawn(server.controllers_with(&controllers));
        for (n, (cluster, other)) in (1..).zip(&servers.others) {
            // Each server gets another seed, so that no uid occurs twice.
            let other = other.fork(seed.wrapping_add(n << 32));
            tasks.spawn(other.controllers_with(&controllers));
            others.push((cluster.clone(), other));
        }
        let simulated = simulate(scenario.simulated, &server, &others, &mut tasks);
        // The node registers before the app starts, so that its creation is not part of the run.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let checks = checks(scenario, &app, &server)?;
        let points = points(scenario, &server, &others);
        let trace = Arc::new(Mutex::new(Trace::new()));
        progress::show_trace(&trace);
        let shared = Arc::new(Shared {
            scenario: scenario.clone(),
            server,
            others,
            faults: Faults::seeded(plan.iter().find_map(Fault::jitter_seed).unwrap_or(seed)),
            fault_targets: FaultTargets::default(),
            externals: Mutex::default(),
            next_behind: Arc::default(),
            next_start: Arc::default(),
            missed_steps: Mutex::default(),
            held_until: Arc::default(),
            clock_offsets: (0..scenario.instances).map(|_| AtomicI64::new(0)).collect(),
            checks: Arc::new(Mutex::new(checks)),
            found: Notify::new(),
            trace,
            points: Mutex::new(points),
            processes: Mutex::new((0..scenario.instances).map(|index| (index, Process::default())).collect()),
            surge_incarnations: tokio::sync::Mutex::default(),
            pending_updates: AtomicUsize::new(0),
        });
        shared.enter();
        shared.observe();
        let timed_faults = shared.inject(plan, &mut tasks);
        for index in 0..scenario.instances {
            tasks.spawn(supervise(shared.clone(), index));
        }
        Ok(Self { shared, client, objects, simulated, timed_faults, tasks })
    }

    /// Returns the end of the last fault that happens at a time.
    pub(super) fn quiet_from(&self) -> Instant {
        let end = self.timed_faults.iter().map(|fault| fault.end).max();
        end.unwrap_or_else(Instant::now)
    }

    /// Returns `true` if a fault that happens at a time has begun, and has not ended for this long. What it held back may
    /// still arrive.
    pub(super) fn is_under_fault(&self, rest: Duration) -> bool {
        let now = Instant::now();
        self.timed_faults.iter().any(|fault| fault.start <= now && now < fault.end + rest)
    }

    /// Returns a client of one of the clusters with all permissions.
    pub(super) fn client_of(&self, cluster: &str) -> Client {
        let other = self.shared.others.iter().find(|(name, _)| name == cluster);
        other.map_or_else(|| self.client.clone(), |(_, other)| Client::new(other.service(), "default"))
    }

    /// Returns the places for faults that this run has passed.
    pub(super) fn points(&self) -> FaultPoints {
        self.shared.points.lock().clone()
    }

    /// Drops what is left of a run whose tasks have ended. The views of processes lead to their clients, and those to the
    /// shared state.
    pub(super) fn end(self) {
        let ended = std::mem::take(&mut *self.shared.processes.lock());
        drop(ended);
    }

    /// Returns the timeline so far.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.shared.trace.lock().lines.clone()
    }
}

/// Starts the simulated kubelets and controllers that a scenario has.
fn simulate(
    what: Simulated,
    server: &ApiServer,
    others: &[(String, ApiServer)],
    tasks: &mut JoinSet<()>,
) -> Vec<Simulation> {
    let mut simulated = Vec::new();
    if what != Simulated::Nothing {
        for (_, other) in others {
            let member = Simulation::of_stubborn_pods(other, tasks);
            member.add_workloads();
            simulated.push(member);
        }
        let own = Simulation::of_stubborn_pods(server, tasks);
        if what == Simulated::Workloads {
            own.add_workloads();
        }
        simulated.push(own);
    }
    simulated
}

/// Returns the checkers of a run, which know what the app declares.
fn checks(scenario: &Scenario, app: &App, server: &ApiServer) -> Result<Checks> {
    let mut checks = Checks::new(scenario.invariants.clone(), Ownership::from_specs(&app.specs()));
    checks.owners = Owners::new(app.name(), scenario.slots);
    checks.elects = scenario.elects();
    checks.requests_per_change = scenario.requests_per_change;
    checks.timed = TimeDependent::parse(&scenario.time_dependent)?;
    checks.snapshot.started = server.now();
    Ok(checks)
}

/// Returns the places for faults of a run that has just begun.
fn points(scenario: &Scenario, server: &ApiServer, others: &[(String, ApiServer)]) -> FaultPoints {
    let history = |cluster: &str, first| History { cluster: cluster.into(), first, ..History::default() };
    let own = std::iter::once(history("", server.revision()));
    let other_clusters = others.iter().map(|(cluster, other)| history(cluster, other.revision()));
    FaultPoints {
        histories: own.chain(other_clusters).collect(),
        instances: scenario.instances,
        n_steps: scenario.n_steps() + 1,
        n_slots: scenario.slots.map_or(0, |slots| slots.count()),
        outdated_lists: scenario.optional_faults.outdated_lists,
        without_clock_faults: !scenario.optional_faults.clock_faults,
        without_freezes: !scenario.optional_faults.freezes,
        ..FaultPoints::default()
    }
}

/// Waits until a task panics, and returns that as a finding. A task that ends normally is ignored, because a fault happens once.
///
/// A replica whose main task panics is not started again, and a dead simulated controller does nothing. Other checkers
/// would miss that, or blame the app for it.
pub(super) async fn wait_for_panic(tasks: &mut JoinSet<()>) -> Violation {
    while let Some(ended) = tasks.join_next().await {
        if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
            return Violation::from_panic("a task of the app or of the simulator", &*panic);
        }
    }
    std::future::pending().await
}

impl Shared {
    /// Adds a line to the timeline: `who` is a process, `user`, `server`, `fault` or `checker`.
    pub(super) fn log(&self, who: &str, what: impl Into<String>) {
        progress::tick();
        self.trace.lock().add(who, what);
    }

    /// Records that the state has settled now. The last time belongs to the final state.
    pub(super) fn record_settled(&self) {
        let now = self.simulated_time();
        let mut points = self.points.lock();
        points.settled_times.push(now);
        points.settled = now;
        points.n_externals_of_work = points.externals.len();
    }

    /// Returns the simulated time since the start of the run.
    pub(super) fn simulated_time(&self) -> Duration {
        self.trace.lock().simulated_time()
    }

    /// Waits until a checker has found something.
    pub(super) async fn wait_for_finding(&self) -> Violation {
        loop {
            let notified = self.found.notified();
            if let Some(found) = self.checks.lock().found.clone() {
                return found;
            }
            notified.await;
        }
    }

    /// Runs a checker. After its first finding all connections of the app are cut, so that the
    /// timeline ends there.
    pub(super) fn check(&self, look: impl FnOnce(&mut Checks, Duration)) {
        progress::tick();
        let now = self.simulated_time();
        let mut checks = self.checks.lock();
        let before = checks.found.is_some();
        look(&mut checks, now);
        if let (false, Some(found)) = (before, &checks.found) {
            self.log("checker", format!("{}: {}", found.checker, found.message));
            self.found.notify_one();
            for process in self.processes.lock().values().filter_map(|process| process.connection.as_ref()) {
                process.disconnect();
            }
        }
    }

    pub(super) fn reconcile_begins(&self, process: &str, controller: &str, key: &ObjectKey, trace: trace::Trace) {
        if !self.is_running(process) {
            return;
        }
        self.log(process, format!("reconciles {controller} {key}"));
        self.check(|checks, now| checks.begin(process, controller, key, &trace.to_string(), now));
    }

    pub(super) fn reconcile_ends(&self, process: &str, report: &Report) {
        if !self.is_running(process) {
            return;
        }
        let Report { controller, key, outcome, .. } = report;
        let how = match outcome {
            Outcome::Done(action) => {
                action.requeue_after().map_or_else(|| "done".into(), |wait| format!("done, requeue after {wait:?}"))
            }
            Outcome::Vanished => "there is no such object".into(),
            Outcome::Failed { text, .. } => format!("failed: {text}"),
            Outcome::Panicked(text) => describe_panic(text),
            Outcome::TimedOut => "took longer than its timeout".into(),
            other => format!("{other:?}"),
        };
        self.log(process, format!("{controller} {key}: {how}"));
        let has_failed = !matches!(outcome, Outcome::Done(_) | Outcome::Vanished);
        self.check(|checks, _| checks.end(process, controller, key, End { text: how, has_failed }));
    }
}

/// Describes a panic of a reconcile. A network call panics, because the runtime of a run drives only simulated time.
fn describe_panic(text: &str) -> String {
    // The text of tokio when a runtime has no driver for sockets.
    let help = if text.contains("IO is disabled") {
        "; a simulation has no network: use a fake in a `thread_local!`"
    } else {
        ""
    };
    format!("panic: {text}{}{help}", panics::place_of(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_a_network_call_has_advice() {
        let no_network =
            "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the runtime builder to enable IO.";
        let help = "; a simulation has no network: use a fake in a `thread_local!`";
        assert_eq!(describe_panic(no_network), format!("panic: {no_network}{help}"));
        assert_eq!(describe_panic("no disk"), "panic: no disk");
    }
}
