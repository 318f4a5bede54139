//! One run: API servers, the processes of the app, the faults, and the user, under simulated time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kctl_apiserver::{
    ApiServer, Change, ControllerOptions,
    faults::{Connection, EventFault, Faults, RequestFault, RequestSummary, Rule, Seen},
};
use kctl_runtime::{
    key::ObjectKey,
    manager::{View, lease::Leadership},
    manifest::{self, RbacOptions},
    reconcile::{Result, ResultExt},
    shard::slot_name,
    source::Source,
    trace,
    worker::{Outcome, Report},
};
use kube::{Api, Client, api::DeleteParams};
use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use super::{
    checks::{Checks, End, Found, SharedChecks, is_app, is_bookkeeping},
    lapse::Lapse,
    owners::Owners,
    ownership::Ownership,
    plan::{self, BOOKMARKS_EVERY, Behind, Fault, History, OUTAGE, OnWrite, Points, SLOW_LISTS_FOR, Timed},
    process::{self, supervise},
    scenario::{Scenario, Simulated},
    snapshot::Id,
    timed::TimeDependent,
    trace::{Line, Trace},
};
use crate::app::{self, FromFile, Simulation};

/// Delay of the garbage collector. Without it, a controller that does not know yet that its primary
/// is gone would create the same object again and again while simulated time stands still.
const COLLECTED_AFTER: Duration = Duration::from_millis(100);

/// A reconcile that runs for this time while nothing changes does not end.
const HANGS_AFTER: Duration = Duration::from_secs(300);
/// Maximum number of such reconciles that a report names.
const KEYS_MAX: usize = 20;

/// Name of the user who takes the steps of a scenario.
const ADMIN: &str = "kubernetes-admin";

/// Describes a request or an event for a timeline: `patch pods default/web`.
fn place(verb: &str, resource: &str, namespace: &str, name: &str, cluster: &str) -> String {
    let [cluster, resource, namespace, name] = [cluster, resource, namespace, name].map(str::to_owned);
    format!("{verb} {}", Id { cluster, group: String::new(), resource, namespace, name })
}

/// Returns the author of a change, for a timeline.
fn author(change: &Change) -> &str {
    match change.by.as_str() {
        "" => "server",
        ADMIN => "user",
        other => other,
    }
}

/// Returns the verb of a change, for a timeline. A deletion that waits for finalizers is
/// `is being deleted`.
fn what(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "is created",
        (_, None) => "is gone",
        (Some(before), Some(after))
            if after["metadata"]["deletionTimestamp"] != before["metadata"]["deletionTimestamp"] =>
        {
            "is being deleted"
        }
        _ => "changes",
    }
}

/// Describes a change of the holder of a Lease; `None` for a renewal.
fn of_lease(change: &Change) -> Option<&'static str> {
    let [before, after] = [&change.before, &change.after].map(|lease| {
        let spec = lease.as_ref().map(|lease| &lease["spec"]);
        spec.and_then(|spec| spec["holderIdentity"].as_str()).unwrap_or_default()
    });
    match after {
        _ if after == before => None,
        "" => Some("hands the lease back"),
        _ => Some("holds the lease from here on"),
    }
}

/// Returns the rule for a fault at the nth read of the app.
///
/// The plan chose the fault for the verb that this read has in the run without faults. Earlier faults of the plan change
/// which reads the app sends, so the rule looks at the verb again, and does not act on a read that the fault does not fit.
fn on_read(nth: u64, fault: RequestFault) -> Rule {
    let n_reads = AtomicU64::new(0);
    Rule::request(fault, move |request| {
        let is_read =
            is_app(&request.client) && !request.is_write() && !is_bookkeeping(&request.group, &request.resource);
        is_read && n_reads.fetch_add(1, Ordering::Relaxed) + 1 == nth && plan::fits(request.verb, fault)
    })
}

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
    /// The server that is behind at the next start of a process.
    pub(super) next_behind: Arc<Mutex<Option<Behind>>>,
    /// The downtime of the process that crashes next, if it is not [`plan::DOWN_FOR`].
    pub(super) next_start: Arc<Mutex<Option<Duration>>>,
    /// End of a partition that holds back what the app would see.
    held_until: Arc<Mutex<Option<Instant>>>,
    /// Seconds by which the clock of each instance is wrong. It belongs to the machine, so a
    /// restart does not correct it.
    pub(super) clock_offsets: Vec<AtomicI64>,
    /// Checkers of invariants, which see each change, request and reconcile.
    pub(super) checks: SharedChecks,
    /// Wakes the run at the first finding of a checker.
    found: Notify,
    /// The timeline that a report prints.
    trace: Mutex<Trace>,
    /// Places at which later runs can inject a fault, as seen in this one.
    points: Mutex<Points>,
    /// The replicas by index; the value changes when one crashes and starts again.
    processes: Mutex<Vec<Process>>,
}

/// A replica of the app, as far as it has started: first it connects, then its manager exists. Both are
/// `None` between a crash and the next start.
#[derive(Clone, Default)]
struct Process {
    connection: Option<Connection>,
    view: Option<View>,
    /// The last process of the replica that has ended, and how.
    ended: Option<String>,
}

/// A run that is set up. Dropping it aborts the processes, the simulated controllers and the faults.
pub(super) struct World {
    pub(super) shared: Arc<Shared>,
    /// A client of the main server with all permissions: that of the user who takes the steps.
    pub(super) client: Client,
    /// The objects of the scenario, which the run applies first.
    pub(super) objects: Vec<FromFile>,
    /// Simulated kubelets and controllers.
    simulated: Vec<Simulation>,
    /// End of the last fault that happens at a time.
    pub(super) quiet_from: Instant,
    /// The processes, the simulated controllers, and the faults that happen at a time.
    pub(super) tasks: JoinSet<()>,
}

impl World {
    /// Starts the servers, the processes of the app, and the faults of a plan.
    pub(super) async fn start(scenario: &Scenario, servers: &Servers, seed: u64, plan: &[Fault]) -> Result<Self> {
        let app = (scenario.app)();
        let mut objects = Vec::new();
        app::parse(&scenario.objects, "the objects of the scenario", &mut objects)?;
        let server = servers.own.fork(seed);
        let client = Client::new(server.service(), "default");
        let mut others = Vec::new();
        let mut tasks = JoinSet::new();
        // Service accounts and root certificates of namespaces don't concern an app, and their writes would shift every revision.
        let controllers = ControllerOptions::default().without_service_accounts().after(COLLECTED_AFTER);
        tasks.spawn(server.controllers_with(&controllers));
        for (n, (cluster, other)) in (1..).zip(&servers.others) {
            // Each server gets another seed, so that no uid occurs twice.
            let other = other.fork(seed.wrapping_add(n << 32));
            tasks.spawn(other.controllers_with(&controllers));
            others.push((cluster.clone(), other));
        }
        let mut simulated = Vec::new();
        if scenario.simulated != Simulated::Nothing {
            for (_, other) in &others {
                let member = Simulation::of_stubborn_pods(other, &mut tasks);
                member.add_workloads();
                simulated.push(member);
            }
            let own = Simulation::of_stubborn_pods(&server, &mut tasks);
            if scenario.simulated == Simulated::Workloads {
                own.add_workloads();
            }
            simulated.push(own);
        }
        // The node registers before the app starts, so that its creation is not part of the run.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut checks = Checks::new(scenario.invariants.clone(), Ownership::from_specs(&app.specs()));
        checks.owners = Owners::new(app.name(), scenario.slots);
        checks.elects = scenario.elects();
        checks.timed = TimeDependent::parse(&scenario.time_dependent)?;
        checks.snapshot.started = server.now();
        let history = |cluster: &str, first| History { cluster: cluster.into(), first, ..History::default() };
        let own = std::iter::once(history("", server.revision()));
        let of_others = others.iter().map(|(cluster, other)| history(cluster, other.revision()));
        let points = Points {
            histories: own.chain(of_others).collect(),
            instances: scenario.instances,
            n_slots: scenario.slots.map_or(0, |slots| slots.count()),
            outdated_lists: scenario.outdated_lists,
            without_clock_faults: !scenario.clock_faults,
            ..Points::default()
        };
        let shared = Arc::new(Shared {
            scenario: scenario.clone(),
            server,
            others,
            faults: Faults::seeded(seed),
            next_behind: Arc::default(),
            next_start: Arc::default(),
            held_until: Arc::default(),
            clock_offsets: (0..scenario.instances).map(|_| AtomicI64::new(0)).collect(),
            checks: Arc::new(Mutex::new(checks)),
            found: Notify::new(),
            trace: Mutex::new(Trace::new()),
            points: Mutex::new(points),
            processes: Mutex::new(vec![Process::default(); scenario.instances]),
        });
        shared.observe();
        let quiet_from = shared.inject(plan, &mut tasks);
        for index in 0..scenario.instances {
            tasks.spawn(supervise(shared.clone(), index));
        }
        Ok(Self { shared, client, objects, simulated, quiet_from, tasks })
    }

    /// Returns `true` if neither the servers, the simulations nor the app have anything to do.
    ///
    /// All replicas have to be up, and one of them has to lead: otherwise a run could end while a standby
    /// still waits for the Lease, and the checkers would miss what the next leader does.
    pub(super) fn is_idle(&self) -> bool {
        let server = &self.shared.server;
        let views: Vec<_> = self.shared.processes.lock().iter().map(|process| process.view.clone()).collect();
        let leads = |view: &View| view.leadership().is_none_or(Leadership::is_leading);
        // During a partition, idle caches don't show that events are held back.
        let is_held = self.shared.held_until.lock().is_some_and(|until| Instant::now() < until);
        !is_held
            && server.pending() == 0
            && self.shared.others.iter().all(|(_, other)| other.pending() == 0)
            && self.simulated.iter().all(Simulation::is_idle)
            && views.iter().all(|view| view.as_ref().is_some_and(process::is_idle))
            && views.iter().flatten().any(leads)
    }

    /// Returns a client of one of the clusters with all permissions.
    pub(super) fn client_of(&self, cluster: &str) -> Client {
        let other = self.shared.others.iter().find(|(name, _)| name == cluster);
        other.map_or_else(|| self.client.clone(), |(_, other)| Client::new(other.service(), "default"))
    }

    /// Returns the key that comes due next: its wait and its controller.
    pub(super) fn next_requeue(&self) -> Option<(Duration, String)> {
        let views: Vec<_> = self.shared.processes.lock().iter().filter_map(|process| process.view.clone()).collect();
        let due = views.iter().flat_map(View::controllers).filter_map(|(spec, queue)| {
            let (key, wait) = queue.next_due()?;
            Some((wait, format!("{} {key}", spec.name)))
        });
        due.min()
    }

    /// Describes the keys whose last reconcile failed. Those of a terminal error are not tried again: they count as long
    /// as their object exists.
    pub(super) fn failing(&self) -> Vec<String> {
        let views: Vec<_> = self.shared.processes.lock().iter().filter_map(|process| process.view.clone()).collect();
        let ends = self.shared.checks.lock().ends.clone();
        let describe = |((name, key), end): (&(String, ObjectKey), &End)| {
            let (mut n_failures, mut exists) = (None, false);
            for view in &views {
                let controllers = view.controllers().iter().zip(view.primaries());
                for ((_, queue), primaries) in controllers.filter(|((spec, _), _)| spec.name == *name) {
                    n_failures = n_failures.or(queue.failing().into_iter().find(|(failing, _)| failing == key));
                    exists |= primaries.store().get(key).is_some();
                }
            }
            let text = &end.text;
            match n_failures {
                Some((_, n)) => Some(format!("{name} {key} failed {n} times in a row, the last time: {text}")),
                None => exists.then(|| format!("{name} {key} failed and is not tried again: {text}")),
            }
        };
        ends.iter().filter(|(_, end)| end.has_failed).filter_map(describe).collect()
    }

    /// Describes the replicas that are not at work: not up, without a complete cache, in a reconcile that does not end, or
    /// all of them without the Lease.
    pub(super) fn not_at_work(&self) -> Vec<String> {
        let processes = self.shared.processes.lock().clone();
        let mut texts = Vec::new();
        for (index, process) in processes.iter().enumerate() {
            let Some(view) = &process.view else {
                let ended = process.ended.as_ref().map_or_else(String::new, |ended| format!(": {ended}"));
                texts.push(format!("app-{index} is not up{ended}"));
                continue;
            };
            let unfilled = view.sources().iter().filter(|source| !source.store().is_synced());
            let text = |source: &Arc<Source>| format!("app-{index} has no list of {}", source.config().kind.plural);
            texts.extend(unfilled.map(text));
            for (spec, queue) in view.controllers() {
                let hanging = queue.keys(KEYS_MAX).running.into_iter().filter(|(_, since)| *since >= HANGS_AFTER);
                texts.extend(
                    hanging.map(|(key, since)| format!("{} {key} is being reconciled for {since:?}", spec.name)),
                );
            }
        }
        let leads = |process: &Process| process.view.as_ref()?.leadership().map(Leadership::is_leading);
        if self.shared.scenario.elects() && !processes.iter().any(|process| leads(process) == Some(true)) {
            texts.push("no replica holds the Lease".into());
        }
        texts
    }

    /// Returns the places for faults that this run has passed.
    pub(super) fn points(&self) -> Points {
        self.shared.points.lock().clone()
    }

    /// Returns the timeline so far.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.shared.trace.lock().lines.clone()
    }
}

/// Waits until a task panics, and returns that as a finding. A task that ends normally is ignored, because a fault happens once.
///
/// A replica whose main task panics is not started again, and a dead simulated controller does nothing: other checkers
/// would miss that, or blame the app for it.
pub(super) async fn panicked(tasks: &mut JoinSet<()>) -> Found {
    while let Some(ended) = tasks.join_next().await {
        if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
            return Found::of_panic("a task of the app or of the simulator", &*panic);
        }
    }
    std::future::pending().await
}

/// API servers on which the CRDs, the role and the Leases' role are installed. Each run gets copies
/// (`ApiServer::fork`), which is much cheaper than installing again.
pub(super) struct Servers {
    own: ApiServer,
    /// The servers of the other clusters, by name.
    others: Vec<(String, ApiServer)>,
}

impl Servers {
    /// Installs everything on one server per cluster.
    ///
    /// # Errors
    /// The objects of the scenario can't be parsed, a server rejects a CRD, or a kind of the app is not
    /// served; the error says how to add it.
    pub(super) async fn installed(scenario: &Scenario) -> Result<Self> {
        let app = (scenario.app)();
        let mut objects = Vec::new();
        app::parse(&scenario.objects, "the objects of the scenario", &mut objects)?;
        TimeDependent::parse(&scenario.time_dependent)?;
        let own = ApiServer::new();
        install(&own, &app, "", leases(scenario)).await?;
        let mut others = Vec::new();
        for cluster in app.cluster_names() {
            let other = ApiServer::new();
            install(&other, &app, &cluster, manifest::ManagerOptions::default()).await?;
            others.push((cluster, other));
        }
        let client_of = |cluster: &str| {
            let other = others.iter().find(|(name, _)| name == cluster);
            Client::new(other.map_or(&own, |(_, other)| other).service(), "default")
        };
        app::check_kinds(&app, client_of, &objects, app::Remedy::Objects).await?;
        Ok(Self { own, others })
    }
}

/// Returns the Leases that the replicas need.
fn leases(scenario: &Scenario) -> manifest::ManagerOptions {
    let shards = scenario.slots.map(|slots| slots.count());
    let mut options = manifest::ManagerOptions::default();
    (options.leader_elect, options.shards) = (scenario.elects(), shards);
    options
}

/// Installs the CRDs of the app's kinds and its role.
async fn install(server: &ApiServer, app: &crate::App, cluster: &str, manager: manifest::ManagerOptions) -> Result<()> {
    let names = RbacOptions::new(app.name(), "default");
    let admin = Client::new(server.service(), "default");
    let permissions = app.permissions().remove(cluster).unwrap_or_default();
    #[cfg(feature = "webhook")]
    app.install_on(server, &permissions, &names, cluster).await?;
    #[cfg(not(feature = "webhook"))]
    app::install(&admin, &app.definitions()?, &permissions, &names).await?;
    let lease = manifest::manager_rbac(&names, manager)?;
    let origin = || "generated manifests".to_owned();
    let lease = lease.into_iter().map(|manifest| FromFile { object: manifest.object, origin: origin() });
    app::apply(&admin, &lease.collect::<Vec<_>>()).await.context("the role for the Leases")?;
    Ok(())
}

impl Shared {
    /// Adds a line to the timeline: `who` is a process, `user`, `server`, `fault` or `checker`.
    pub(super) fn log(&self, who: &str, what: impl Into<String>) {
        self.trace.lock().add(who, what);
    }

    /// Records the time at which the final state was reached.
    pub(super) fn settled_at(&self) {
        let now = self.elapsed();
        self.points.lock().settled = now;
    }

    /// Returns the simulated time since the start of the run.
    pub(super) fn elapsed(&self) -> Duration {
        self.trace.lock().elapsed()
    }

    /// Waits until a checker has found something.
    pub(super) async fn found(&self) -> Found {
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
        let now = self.elapsed();
        let mut checks = self.checks.lock();
        let before = checks.found.is_some();
        look(&mut checks, now);
        if let (false, Some(found)) = (before, &checks.found) {
            self.log("checker", format!("{}: {}", found.checker, found.message));
            self.found.notify_one();
            for process in self.processes.lock().iter().filter_map(|process| process.connection.as_ref()) {
                process.cut();
            }
        }
    }

    /// Records that a replica has a connection, so that a finding can cut it. Its manager does not exist yet.
    pub(super) fn connected(&self, index: usize, connection: &Connection) {
        self.processes.lock()[index].connection = Some(connection.clone());
    }

    /// Records that the manager of a replica exists; from now on it counts for [`World::is_idle`].
    pub(super) fn started(&self, index: usize, view: View) {
        self.processes.lock()[index].view = Some(view);
    }

    /// Records the end of a replica, by a crash or by itself. Its running reconciles have ended with it.
    pub(super) fn ended(&self, index: usize, name: &str, how: &str) {
        self.processes.lock()[index] = Process { ended: Some(format!("{name} {how}")), ..Process::default() };
        self.check(|checks, _| checks.authors.process_ended(name));
    }

    /// Returns `true` for a process that still runs. Tasks of an ended process may be polled once
    /// more before they are dropped.
    fn is_running(&self, process: &str) -> bool {
        let processes = self.processes.lock();
        processes.iter().filter_map(|started| started.connection.as_ref()).any(|started| started.client() == process)
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
            Outcome::Panicked(text) => format!("panic: {text}"),
            Outcome::TimedOut => "took longer than its timeout".into(),
            other => format!("{other:?}"),
        };
        self.log(process, format!("{controller} {key}: {how}"));
        let has_failed = !matches!(outcome, Outcome::Done(_) | Outcome::Vanished);
        self.check(|checks, _| checks.end(controller, key, End { text: how, has_failed }));
    }

    /// Connects the checkers and the timeline with the servers and with the fault injector.
    ///
    /// The observers hold weak references: the servers are a part of this state.
    fn observe(self: &Arc<Self>) {
        self.observe_server("", &self.server);
        for (cluster, other) in &self.others {
            self.observe_server(cluster, other);
        }
        let shared = Arc::downgrade(self);
        self.faults.observe(move |seen| {
            let Some(shared) = shared.upgrade() else { return };
            shared.seen(seen);
        });
    }

    /// Reports each change and each request of one server to the checkers, and logs what concerns the app.
    fn observe_server(self: &Arc<Self>, cluster: &str, server: &ApiServer) {
        let (shared, name) = (Arc::downgrade(self), cluster.to_owned());
        server.observe_changes(move |change| {
            let Some(shared) = shared.upgrade() else { return };
            if !is_bookkeeping(&change.group, &change.resource) {
                let id = Id::for_change(&name, change);
                let what = format!("{id} {} at revision {}", what(change), change.revision);
                shared.trace.lock().add_change(author(change), what, change.after.clone());
            } else if let Some(what) = shared.of_app_lease(&name, change) {
                shared.log(author(change), what);
            }
            shared.check(|checks, now| checks.change(&name, change, now));
        });
        let (shared, name) = (Arc::downgrade(self), cluster.to_owned());
        server.observe(move |request| {
            let Some(shared) = shared.upgrade() else { return };
            let Some(client) = request.client.as_deref().filter(|client| is_app(client)) else { return };
            if request.code >= 400 {
                let what = place(request.verb, &request.resource, &request.namespace, &request.name, &name);
                shared.log(client, format!("{what} is answered {}", request.code));
            }
            let mut in_vain = None;
            shared.check(|checks, now| in_vain = checks.request(&name, request, now));
            if let Some(in_vain) = in_vain {
                shared.log(client, in_vain);
            }
        });
    }

    /// Describes a change of the holder of a Lease of the app's processes, which are on the app's own cluster.
    fn of_app_lease(&self, cluster: &str, change: &Change) -> Option<&'static str> {
        let is_of_app = cluster.is_empty() && self.checks.lock().owners.lease(change).is_some();
        is_of_app.then(|| of_lease(change)).flatten()
    }

    /// Records where a later run can inject a fault, and logs a fault that was injected now.
    fn seen(&self, seen: Seen<'_>) {
        if let Seen::Request(request) = seen {
            let mut points = self.points.lock();
            let here = points.histories.iter_mut().filter(|history| *history.cluster == *request.server);
            here.for_each(|history| history.reads_may_be_cached |= request.may_be_cached);
        }
        match seen {
            Seen::Request(request) if is_bookkeeping(&request.group, &request.resource) => {}
            Seen::Request(request) if request.is_write() => {
                let revisions = self.checks.lock().revisions.clone();
                let now = self.elapsed();
                let mut points = self.points.lock();
                points.n_writes += 1;
                points.write_times.push(now);
                for history in &mut points.histories {
                    let newest = revisions.get(&*history.cluster).copied().unwrap_or_default();
                    history.before.push(newest.max(history.first));
                }
            }
            Seen::Request(request) => self.points.lock().reads.push(request.verb),
            Seen::Event(event) if !is_bookkeeping(&event.group, &event.resource) => {
                self.points.lock().events.push(event.clone());
            }
            Seen::InRequest(request, fault) => {
                let what = place(request.verb, &request.resource, &request.namespace, &request.name, &request.server);
                let what = format!("{what} of {}", request.client);
                let kctl_apiserver::faults::Fault::Request(fault) = fault else { return };
                self.log("fault", format!("{what}: {}", plan::request(fault)));
            }
            Seen::AtEvent(event, fault) => {
                let what = place(&event.kind, &event.resource, &event.namespace, &event.name, &event.server);
                let kctl_apiserver::faults::Fault::Event(fault) = fault else { return };
                self.log("fault", format!("event {what} to {}: {}", event.client, plan::event(fault)));
            }
            _ => {}
        }
    }

    /// Sets up the faults of a plan. Returns the end of the last one that happens at a time.
    fn inject(self: &Arc<Self>, plan: &[Fault], tasks: &mut JoinSet<()>) -> Instant {
        let start = Instant::now();
        let mut end = start;
        for fault in plan {
            match fault.clone() {
                Fault::Write { nth, what } => self.faults.add(self.on_write(what).nth(nth).times(1)),
                Fault::Read { nth, what } => self.faults.add(on_read(nth, what)),
                Fault::Event { nth, what } => {
                    let rule = Rule::event(what, |event| {
                        is_app(&event.client) && !is_bookkeeping(&event.group, &event.resource)
                    });
                    self.faults.add(rule.nth(nth).times(1));
                }
                Fault::At { time, what } => {
                    end = end.max(start + time);
                    if let Timed::Partition { instance, length } = what {
                        end = end.max(start + time + length);
                        self.partition(instance, start + time, length);
                    }
                    if let Timed::SlowLists { instance, answer } = what {
                        end = end.max(start + time + SLOW_LISTS_FOR + answer);
                        self.slow_lists(instance, start + time, answer);
                    }
                    if let Timed::Lapse(Lapse { length, write_delay, .. }) = what {
                        end = end.max(start + time + length + write_delay);
                    }
                    let shared = self.clone();
                    tasks.spawn(async move {
                        tokio::time::sleep_until(start + time).await;
                        match what {
                            Timed::LeaseDeleted { slot } => shared.delete_lease(slot).await,
                            what => shared.at_time(what),
                        }
                    });
                }
            }
        }
        end
    }

    /// Returns the rule for a fault at a write of the app. Crashes also determine how the next process starts.
    fn on_write(&self, what: OnWrite) -> Rule {
        let fault = match &what {
            OnWrite::Fails(fault) => *fault,
            OnWrite::Crash { moment, .. } | OnWrite::Outage(moment) => RequestFault::Crash(*moment),
            OnWrite::CrashLate(time) => RequestFault::CrashLate(*time),
        };
        let rule = Rule::request(fault, |request| {
            is_app(&request.client) && request.is_write() && !is_bookkeeping(&request.group, &request.resource)
        });
        match what {
            OnWrite::Crash { behind: Some(behind), .. } => {
                let next = self.next_behind.clone();
                rule.then(move || *next.lock() = Some(behind.clone()))
            }
            OnWrite::Outage(_) => {
                let next = self.next_start.clone();
                rule.then(move || *next.lock() = Some(OUTAGE))
            }
            _ => rule,
        }
    }

    /// Delays everything that passes between a process and the server in this time by its length.
    fn partition(&self, instance: usize, from: Instant, length: Duration) {
        let of_instance = move |client: &str| client.starts_with(&format!("app-{instance}."));
        let now = move || (from..from + length).contains(&Instant::now());
        let holds = || {
            let held_until = self.held_until.clone();
            move || {
                let mut until = held_until.lock();
                *until = until.max(Some(Instant::now() + length));
            }
        };
        let delay = RequestFault::Delay(length);
        let fills = |request: &RequestSummary| ["list", "watch"].contains(&request.verb);
        let of_caches = Rule::request(delay, move |request| of_instance(&request.client) && fills(request) && now());
        self.faults.add(of_caches.then(holds()));
        self.faults.add(Rule::request(delay, move |request| of_instance(&request.client) && now()));
        let events = Rule::event(EventFault::Hold(length), move |event| of_instance(&event.client) && now());
        self.faults.add(events.then(holds()));
    }

    /// Delays the answers of the lists that fill the caches of a process. Its watches go on, and get many bookmarks.
    fn slow_lists(&self, instance: usize, from: Instant, answer: Duration) {
        let now = move || (from..from + SLOW_LISTS_FOR).contains(&Instant::now());
        let bookmarks = RequestFault::Bookmarks { every: BOOKMARKS_EVERY, lasts: SLOW_LISTS_FOR };
        for (verb, fault) in [("list", RequestFault::DelayAnswer(answer)), ("watch", bookmarks)] {
            let of_caches = move |request: &RequestSummary| {
                let is_own = request.client.starts_with(&format!("app-{instance}."));
                is_own && request.verb == verb && !is_bookkeeping(&request.group, &request.resource)
            };
            self.faults.add(Rule::request(fault, move |request| of_caches(request) && now()));
        }
    }

    /// Deletes the Lease of a slot, as an administrator would with kubectl.
    async fn delete_lease(&self, slot: u32) {
        let name = slot_name((self.scenario.app)().name(), slot);
        self.log("fault", format!("the Lease {name} is deleted by hand"));
        let leases = Api::<Lease>::default_namespaced(Client::new(self.server.service(), "default"));
        // A Lease that does not exist yet needs no deletion, so a 404 is ignored.
        drop(leases.delete(&name, &DeleteParams::default()).await);
    }

    /// Ends a process, if it runs.
    fn crash(&self, instance: usize) {
        let connection = self.processes.lock().get(instance).and_then(|process| process.connection.clone());
        if let Some(connection) = connection {
            self.log("fault", format!("{} crashes", connection.client()));
            connection.cut();
        }
    }

    /// Injects a fault that is bound to a time rather than to a request.
    fn at_time(&self, what: Timed) {
        match what {
            Timed::LeaseDeleted { .. } => {}
            Timed::Crash { instance } => self.crash(instance),
            Timed::Partition { instance, length } => {
                self.log("fault", format!("app-{instance} does not reach the server for {length:?}"));
            }
            Timed::SlowLists { instance, answer } => {
                self.log("fault", format!("the lists of app-{instance} {}", plan::slow_lists(answer)));
                self.crash(instance);
            }
            Timed::Lapse(lapse) => {
                let leader = self.checks.lock().leader();
                if let Some(instance) = leader {
                    self.log("fault", format!("{instance} {lapse}"));
                    lapse.begin(&self.faults, &instance);
                }
            }
            Timed::ClockJump { instance, seconds } => {
                self.log("fault", format!("the clock of app-{instance} jumps by {seconds} s"));
                if let Some(offset) = self.clock_offsets.get(instance) {
                    offset.fetch_add(seconds, Ordering::Relaxed);
                }
            }
        }
    }
}
