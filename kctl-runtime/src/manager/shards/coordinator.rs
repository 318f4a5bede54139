//! Takes a seat, watches the Leases of the app, and starts and ends a task for each slot that this replica should own.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{Notify, oneshot, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    LABEL, Planted, ShardConfig, ShardView,
    caches::limit,
    division::{Division, SlotHolder},
    observed_leases::unknown_holder,
    seat,
    slot_task::Holder,
    startup_delay::StartupDelay,
    view::Shared,
};
use crate::{
    freezer,
    key::ObjectKey,
    manager::{
        Clock,
        lease::{
            ElectionConfig, ElectionLimiter, ElectionRuntime, Elector, Holders, LatestRecord, Leadership, Missing,
            ObservedLease, Record,
        },
    },
    object::{Kind, Stored},
    queue::WorkQueue,
    reconcile::Env,
    shard::{Phase, Tenures, is_slot_or_seat_name, slot_name},
    source::{CacheBug, Source, WatchConfig},
    store::{Change, Handler, Share, SharedStore},
    writer::ShardPermits,
};

/// Longest wait for the caches before this replica takes a seat, and again for its handlers.
///
/// After that it takes its share if no other replica can work on all slots either. Its controllers with complete caches
/// work on them, and the others wait.
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait after the Lease of the settings is held, in which the controllers begin.
const CONTROLLER_START_DELAY: Duration = Duration::from_millis(1);
/// Time between two updates of the clock of [`Planted::FrozenClock`].
const CLOCK_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// The slots of one replica.
pub(in crate::manager) struct Coordinator {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) config: Arc<ShardConfig>,
    tenures: Arc<Tenures>,
    pub(super) shared: Arc<Mutex<Shared>>,
    /// Notified when a Lease has changed by more than a renewal, or this replica's seat has.
    pub(super) changed: Arc<Notify>,
    /// Notified when the note at this replica's seat is outdated: it sees other seats live, begins to ask for slots, or
    /// its caches are complete.
    pub(super) note_changed: Arc<Notify>,
    /// The watch of the Leases of slots and seats.
    source: Arc<Source>,
    /// The Lease of the settings.
    settings: Leadership,
    planted: Option<Planted>,
    /// The time that [`Planted::FrozenClock`] reads; `None` without this bug.
    frozen_clock: Option<Arc<Mutex<Instant>>>,
    /// The runtime of the elections for slots; `None` for the coordinator's runtime.
    election_runtime: Option<ElectionRuntime>,
    /// Limits the elections for slots. The settings and the seat don't wait for them.
    limiter: ElectionLimiter,
}

/// A task that holds or awaits one slot.
struct SlotTask {
    wanted: watch::Sender<bool>,
    free: Arc<Notify>,
    /// When the state of the Lease that the task was last notified of was first seen. A candidate that may not write
    /// the Lease would otherwise try again with each renewal of any other Lease.
    notified_of: Option<FirstSeen>,
}

/// When the present state of a free Lease was first seen; `None` inside if it never was.
type FirstSeen = Option<Instant>;

impl Coordinator {
    /// Creates a coordinator that does nothing before [`run`](Self::run). `settings` is the election for the Lease of
    /// the settings, whose permit all writes need.
    pub(in crate::manager) fn new(client: Client, clock: Clock, config: ShardConfig, settings: Leadership) -> Self {
        let tenures = Arc::new(Tenures::new(config.slots(), settings.permit()));
        let (shared, changed, source) = (Arc::default(), Arc::default(), Arc::new(source(client.clone(), &config)));
        let (config, note_changed) = (Arc::new(config), Arc::default());
        Self {
            client,
            clock,
            config,
            tenures,
            shared,
            changed,
            note_changed,
            source,
            settings,
            planted: None,
            frozen_clock: None,
            election_runtime: None,
            limiter: ElectionLimiter::default(),
        }
    }

    pub(in crate::manager) fn with_election_runtime(mut self, runtime: Option<ElectionRuntime>) -> Self {
        self.election_runtime = runtime;
        self
    }

    pub(in crate::manager) fn plant(mut self, bug: Planted) -> Self {
        self.planted = Some(bug);
        if Planted::AnotherHash.is_in(Some(bug)) {
            let (config, common) = ((*self.config).clone().with_another_hash(), self.tenures.common());
            self.tenures = Arc::new(Tenures::new(config.slots(), common));
            self.config = Arc::new(config);
        }
        if Planted::FrozenClock.is_in(Some(bug)) {
            let clock = Arc::new(Mutex::new(Instant::now()));
            let common = self.tenures.common().with_clock(&clock);
            self.tenures = Arc::new(Tenures::new(self.config.slots(), common));
            self.frozen_clock = Some(clock);
        }
        self
    }

    /// Updates the time that a planted bug reads. Never returns.
    async fn update_frozen_clock(&self) {
        let Some(clock) = &self.frozen_clock else { return std::future::pending().await };
        loop {
            // Ahead by one update, so that it is late only if the process does not run.
            *clock.lock() = Instant::now() + CLOCK_UPDATE_INTERVAL;
            sleep(CLOCK_UPDATE_INTERVAL).await;
        }
    }

    /// Limits the caches of these controllers to the slots of this replica where their readers allow it.
    pub(in crate::manager) fn limit_caches<'a>(&self, envs: impl Iterator<Item = &'a Arc<Env>>, whole: &[Kind]) {
        let bug = match self.planted {
            planted if Planted::CacheHash.is_in(planted) => Some(CacheBug::AnotherHash),
            planted if Planted::OvertakenListIgnored.is_in(planted) => Some(CacheBug::OvertakenListIgnored),
            planted if Planted::WatchKept.is_in(planted) => Some(CacheBug::WatchKept),
            _ => None,
        };
        limit(envs, &self.tenures, whole, bug);
    }

    pub(in crate::manager) fn tenures(&self) -> &Arc<Tenures> {
        &self.tenures
    }

    pub(in crate::manager) fn view(&self) -> ShardView {
        ShardView {
            config: self.config.clone(),
            tenures: self.tenures.clone(),
            shared: self.shared.clone(),
            settings: self.settings.clone(),
            source: self.source.clone(),
            gates: Vec::new(),
        }
    }

    /// Returns the candidate for the Lease of the settings, once the Leases of slots and seats are listed.
    ///
    /// The Lease of the settings may have been deleted by hand. Replicas with other settings notice that within a retry
    /// period, and may work on the same keys until then. So if any slot or seat has a holder, a missing Lease counts as
    /// held for the longest duration of these Leases.
    pub(in crate::manager) fn guard(&self, elector: Elector) -> impl Future<Output = Elector> + Send + 'static {
        let (store, app) = (self.source.store().clone(), self.config.name().to_owned());
        async move {
            store.wait_until_synced().await;
            let lease = |stored: &Arc<Stored>| serde_json::from_str(&stored.json()).unwrap_or_default();
            let is_known = |stored: &&Arc<Stored>| is_slot_or_seat_name(&app, &stored.key().name);
            let records =
                store.all().iter().filter(is_known).map(|stored| Record::read(&lease(stored))).collect::<Vec<_>>();
            let held = records.iter().filter(|record| !record.holder().is_empty());
            match held.map(Record::duration).max() {
                Some(longest) => elector.assume_held(unknown_holder(longest), Instant::now()),
                None => elector,
            }
        }
    }

    /// Holds the slots of this replica until `stop` is ready, then hands all of them over and returns.
    ///
    /// # Cancel safety
    /// Dropping the future leaves all Leases to expire.
    pub(in crate::manager) async fn run(
        self,
        leadership: Leadership,
        envs: Vec<Arc<Env>>,
        queues: Vec<WorkQueue<ObjectKey>>,
        graceful: Option<Duration>,
        stop: oneshot::Receiver<()>,
    ) {
        let holder = Holder { tenures: self.tenures.clone(), queues, graceful, planted: self.planted };
        let source = self.source.clone();
        let store = source.store().clone();
        let subscribe = async { drop(store.subscribe(self.lease_handler()).await) };
        let log_wait = self.log_wait(&leadership);
        let frozen_clock = self.update_frozen_clock();
        let work = async {
            let mut stop = stop;
            let begins = async {
                let full = futures::future::join_all(envs.iter().map(|env| env.complete()));
                // Before the first list, every Lease would seem to be free.
                let listed = async {
                    store.wait_until_synced().await;
                    Instant::now()
                };
                let (_late, listed_at) = tokio::join!(timeout(CACHE_SYNC_TIMEOUT, full), listed);
                let led = leadership.wait_until_leading().await;
                if !leadership.joined_new_lease() {
                    self.assume_edited_held(listed_at);
                }
                if led {
                    handlers_ready(&envs).await;
                }
                // Controllers wait for the same condition and are woken in a random order. The sleep makes a simulated
                // run repeatable.
                sleep(CONTROLLER_START_DELAY).await;
                led
            };
            tokio::select! {
                biased;
                _stopped = &mut stop => return,
                begins = begins => if !begins { return },
            }
            self.serve(holder, &envs, stop).await;
        };
        tokio::select! {
            biased;
            () = work => {}
            _ended = async { tokio::join!(store.clone().write(), subscribe, source.run(), log_wait) } => {}
            () = frozen_clock => {}
        }
    }

    /// Logs why this replica waits for the Lease of the settings: the first failed request, and each holder with other
    /// settings. Texts of failures vary, so the next ones are not logged. Also logs that the wait is over.
    async fn log_wait(&self, leadership: &Leadership) {
        let (view, lease) = (self.view(), format!("{}/{}", self.config.namespace(), self.config.name()));
        let mut logged = None;
        loop {
            if let Ok(led) = timeout(self.config.retry_period(), leadership.wait_until_leading()).await {
                if led && logged.is_some() {
                    tracing::info!(lease, "the wait for the Lease of the settings is over");
                }
                return;
            }
            let disagreement = view.disagreement();
            let Some(reason) = disagreement.clone().or_else(|| view.waits_because()) else { continue };
            if logged.as_ref() != Some(&disagreement) {
                logged = Some(disagreement);
                tracing::warn!(
                    lease,
                    "no slots, and no reconciles, before this replica holds the Lease of the settings: {reason}"
                );
            }
        }
    }

    fn lease_handler(&self) -> Handler {
        let (shared, changed) = (self.shared.clone(), self.changed.clone());
        let (config, holders) = (self.config.clone(), Holders::Numbered { process: self.config.process() });
        Arc::new(move |change, _origin| {
            // Records are kept for good, so a Lease of another program with the label must not add any.
            if !is_slot_or_seat_name(config.name(), &change.latest().key().name) {
                return;
            }
            let (mut shared, now) = (shared.lock(), Instant::now());
            let is_changed = match change {
                Change::Deleted { .. } => {
                    shared.observed_leases.observe_delete(&change.latest().key().name, now);
                    true
                }
                Change::Added(lease) | Change::Updated { new: lease, .. } => {
                    let (name, lease): (_, Value) =
                        (&lease.key().name, serde_json::from_str(&lease.json()).unwrap_or_default());
                    let record = holders.record(config.identity(), &lease);
                    let has_other_record = shared.observed_leases.observe(name, record, now);
                    shared.observed_leases.observe_note(name, seat::note_of(&lease)) || has_other_record
                }
            };
            if is_changed {
                changed.notify_one();
            }
        })
    }

    /// Notes the slots whose Lease was missing or edited at the first list, because their owners may still be at work.
    ///
    /// A Lease that is deleted by hand is created again by its owner, or free once it would have expired. A replica that saw
    /// it counts from the deletion. One that never saw it would take the slot at once. Only under a new Lease of the settings
    /// there can be no earlier owner.
    fn assume_edited_held(&self, listed_at: Instant) {
        let mut shared = self.shared.lock();
        for slot in self.config.slots().all() {
            shared.observed_leases.assume_held(
                &slot_name(self.config.name(), slot),
                self.config.lease_duration(),
                listed_at,
            );
        }
    }

    /// Holds slots until `stop` is ready, and returns once all are handed over.
    ///
    /// It looks at all slots when a Lease has changed by more than a renewal, when a Lease or a delay ends, and once per
    /// retry period. With 256 slots there are 128 renewals a second, and a look at each would be work quadratic in slots.
    async fn serve(&self, holder: Holder, envs: &[Arc<Env>], mut stop: oneshot::Receiver<()>) {
        let (mut held, mut tasks): (BTreeMap<u32, SlotTask>, JoinSet<u32>) = (BTreeMap::new(), JoinSet::new());
        let (leave, left) = watch::channel(false);
        let mut seat = std::pin::pin!(self.keep_seat(left));
        let (mut seat_ended, mut sweep) = (false, seat::Sweep::default());
        let (n_slots, lease) = (self.config.slots().count(), self.config.lease_duration());
        let mut division = Division::new(n_slots, self.config.retry_period(), lease);
        let mut startup_delay = StartupDelay::default();
        let mut complete = std::pin::pin!(futures::future::join_all(envs.iter().map(|env| env.complete())));
        let mut is_complete = envs.iter().all(|env| env.is_complete());
        self.shared.lock().has_complete_caches = is_complete;
        loop {
            let stopping = *leave.borrow();
            let now = Instant::now();
            let wanted =
                if stopping { Vec::new() } else { self.desired_slots(&mut division, &mut startup_delay, &held, now) };
            self.update(&wanted, &holder, &mut held, &mut tasks, now);
            debug_assert_eq!(held.len(), tasks.len(), "a slot has one task, which ends before the next one begins");
            if stopping && tasks.is_empty() && seat_ended {
                debug_assert!(self.tenures.is_empty(), "the task of a slot ends its tenure");
                return;
            }
            let swept = self.sweep(&mut sweep, division.seats(), now);
            let expiry = self.shared.lock().observed_leases.next_expiry(now);
            let settled = if stopping { None } else { startup_delay.ends_at() };
            let wake = [expiry, division.next_change(now), settled, swept].into_iter().flatten();
            let wake = wake.fold(now + self.config.retry_period(), Instant::min);
            tokio::select! {
                biased;
                _stopped = &mut stop, if !stopping => drop(leave.send_replace(true)),
                _all = &mut complete, if !is_complete => {
                    is_complete = true;
                    self.note_complete_caches();
                }
                Some(ended) = tasks.join_next() => {
                    let slot = resume_panic(ended);
                    let removed = held.remove(&slot);
                    debug_assert!(removed.is_some(), "a task ends once");
                    self.shared.lock().elections.remove(&slot_name(self.config.name(), slot));
                }
                () = &mut seat, if !seat_ended => seat_ended = true,
                () = self.changed.notified() => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Returns the slots that this replica should hold, as far as it can see, in ascending order. The division is calculated
    /// again only if a seat was taken or left, or a note of the live seats has changed.
    fn desired_slots(
        &self,
        division: &mut Division,
        startup_delay: &mut StartupDelay,
        held: &BTreeMap<u32, SlotTask>,
        now: Instant,
    ) -> Vec<u32> {
        if let Some(seats) = self.seats_if_changed(division.seats(), now) {
            division.divide(seats);
        }
        startup_delay.observe(division.seats(), now);
        if !startup_delay.is_over() {
            return Vec::new();
        }
        self.ask_for_slots(division, now);
        let (phases, shared) = (self.tenures.phases(), self.shared.lock());
        let (name, own) = (self.config.name(), self.config.identity());
        let part = |slot: u32| match shared.observed_leases.holder(&slot_name(name, slot), now) {
            _ if matches!(phases[slot as usize], Phase::Owned | Phase::HandingOver) => SlotHolder::ThisReplica,
            Some(holder) if holder == own && held.contains_key(&slot) => SlotHolder::ThisReplica,
            Some(_) => SlotHolder::Other,
            None => SlotHolder::Free,
        };
        self.config.slots().all().filter(|slot| division.wants(*slot, part(*slot), now)).collect()
    }

    /// Starts tasks for wanted slots, makes unwanted ones hand over, and wakes candidates of free Leases.
    fn update(
        &self,
        wanted: &[u32],
        holder: &Holder,
        held: &mut BTreeMap<u32, SlotTask>,
        tasks: &mut JoinSet<u32>,
        now: Instant,
    ) {
        for (slot, task) in held.iter_mut() {
            if wanted.binary_search(slot).is_ok() {
                let free_since = self.free_since(&slot_name(self.config.name(), *slot), now);
                if free_since.is_some() && free_since != task.notified_of {
                    task.free.notify_one();
                }
                task.notified_of = free_since;
            } else {
                task.wanted.send_if_modified(std::mem::take);
            }
        }
        for slot in wanted.iter().copied() {
            if held.contains_key(&slot) {
                continue;
            }
            let (free, (wanted, is_wanted)) = (Arc::new(Notify::new()), watch::channel(true));
            let runtime = self.election_runtime.clone();
            let Some(elector) = self.elector(self.config.slot(slot), &free, runtime) else { continue };
            let elector = elector.with_limiter(self.limiter.clone());
            let task = holder.clone().hold(slot, elector, is_wanted);
            freezer::spawn(tasks, async move {
                task.await;
                slot
            });
            // The task reads the Lease at once.
            let notified_of = self.free_since(&slot_name(self.config.name(), slot), now);
            held.insert(slot, SlotTask { wanted, free, notified_of });
        }
    }

    pub(super) fn is_free(&self, lease: &str, now: Instant) -> bool {
        self.free_since(lease, now).is_some()
    }

    /// Returns when the present state of a free Lease was seen; `None` if the Lease is held.
    fn free_since(&self, lease: &str, now: Instant) -> Option<FirstSeen> {
        let observed_leases = &self.shared.lock().observed_leases;
        let is_free = observed_leases.holder(lease, now).is_none();
        is_free.then(|| observed_leases.last(lease).map(|(_, seen)| *seen))
    }

    /// Returns a candidate for a Lease that this coordinator watches, on `runtime` if there is one.
    pub(super) fn elector(
        &self,
        config: ElectionConfig,
        free: &Arc<Notify>,
        runtime: Option<ElectionRuntime>,
    ) -> Option<Elector> {
        let (seen, missing) = {
            let observed_leases = &self.shared.lock().observed_leases;
            (
                observed_leases.last_for_candidate(&config.name, self.config.identity(), Instant::now()).cloned(),
                observed_leases.is_missing(&config.name).then_some(Missing),
            )
        };
        let (shared, lease) = (self.shared.clone(), config.name.clone());
        let latest: LatestRecord = Box::new(move || shared.lock().observed_leases.last(&lease).cloned());
        // The configuration was checked when it was created.
        let name = config.name.clone();
        let elector = Elector::new(self.client.clone(), config, self.clock.clone()).ok()?;
        let elector = elector.with_process_number(self.config.process()).with_runtime(runtime).without_failure_log();
        self.shared.lock().elections.insert(name, elector.leadership());
        Some(elector.with_watch(ObservedLease { seen, missing, latest, free: free.clone() }))
    }
}

/// Waits until the handlers of the controllers have seen the initial objects, at most for [`CACHE_SYNC_TIMEOUT`].
///
/// `map` and `when` may take long for all objects of a kind. Slots that are gained during that time would wait for
/// them. A controller with an incomplete cache has no handlers yet and does not count.
async fn handlers_ready(envs: &[Arc<Env>]) {
    let complete = envs.iter().filter(|env| env.is_complete());
    let ready = futures::future::join_all(complete.map(|env| env.gate.ready()));
    let _late = timeout(CACHE_SYNC_TIMEOUT, ready).await;
}

/// Returns the result of a task. A panic is resumed in the coordinator, so that the process ends. Otherwise the Lease
/// of the slot would expire, and other replicas would own it while this one does not know.
fn resume_panic<T>(ended: Result<T, JoinError>) -> T {
    match ended.map_err(JoinError::into_panic) {
        Ok(output) => output,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Returns the source of all Leases of slots and seats.
fn source(client: Client, config: &ShardConfig) -> Source {
    let kind = Kind {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        kind: "Lease".into(),
        plural: "leases".into(),
    };
    let leases = WatchConfig {
        namespaces: vec![config.namespace().into()],
        labels: format!("{LABEL}={}", config.name()),
        ..WatchConfig::new(kind)
    };
    let store = SharedStore::for_namespaces(&leases.namespaces);
    let source = Source::new(client, leases, Arc::new(store)).with_role(&config.role_options());
    source.seed_jitter(config.process());
    source
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::pending,
        sync::atomic::{AtomicU32, Ordering},
    };

    use futures::FutureExt;
    use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::{shard::ShardBy, store::Origin};

    /// Number of slots that the replica wants.
    const N_SLOTS: u32 = 64;

    /// Returns the coordinator of a replica whose requests are not answered, and their number.
    fn coordinator() -> (Coordinator, Arc<AtomicU32>) {
        let n_requests = Arc::<AtomicU32>::default();
        let counted = n_requests.clone();
        let silent = tower::service_fn(move |_request: http::Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            pending::<Result<http::Response<Body>, Infallible>>()
        });
        let client = Client::new(silent, "default");
        let clock: Clock = Arc::new(Timestamp::now);
        let config = ShardConfig::new(ElectionConfig::new("web", "default", "a"), N_SLOTS, ShardBy::Object).unwrap();
        let settings = Elector::new(client.clone(), config.settings(), clock.clone()).unwrap().leadership();
        (Coordinator::new(client, clock, config, settings), n_requests)
    }

    #[tokio::test(start_paused = true)]
    async fn wanted_slots_are_not_all_requested_at_once() {
        let (coordinator, n_requests) = coordinator();
        let tenures = coordinator.tenures.clone();
        let holder = Holder { tenures, queues: Vec::new(), graceful: None, planted: None };
        let (mut held, mut tasks) = (BTreeMap::new(), JoinSet::new());
        let wanted: Vec<u32> = (0..N_SLOTS).collect();
        coordinator.update(&wanted, &holder, &mut held, &mut tasks, Instant::now());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(held.len(), wanted.len());
        let n_requests = n_requests.load(Ordering::Relaxed);
        assert!((1..N_SLOTS).contains(&n_requests), "{n_requests}");
    }

    /// Returns a version of the Lease of slot 0. One without a holder keeps its duration, as after an edit by a person. A
    /// release sets a duration of 1 s.
    fn lease_of_slot_0(holder: &str, version: u32) -> Arc<Stored> {
        let metadata = json!({ "name": "web-slot-0", "namespace": "default", "resourceVersion": version.to_string() });
        let renewed = format!("2026-01-01T00:00:{version:02}.000000Z");
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed });
        let lease = json!({ "metadata": metadata, "spec": spec }).to_string();
        Arc::new(Stored::accept(&Kind::of::<Lease>(), &lease).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_of_leases_wake_no_coordinator() {
        let (coordinator, _n_requests) = coordinator();
        let handler = coordinator.lease_handler();
        let update = |old: &Arc<Stored>, new: &Arc<Stored>| Change::Updated { old: old.clone(), new: new.clone() };
        let [taken, renewed, emptied] = [lease_of_slot_0("b", 1), lease_of_slot_0("b", 2), lease_of_slot_0("", 3)];
        for (change, wakes) in [
            (Change::Added(taken.clone()), true),
            (update(&taken, &renewed), false),
            (update(&renewed, &emptied), true),
            (Change::Deleted { last: emptied }, true),
        ] {
            handler(&change, Origin::Live);
            assert_eq!(coordinator.changed.notified().now_or_never().is_some(), wakes, "{change:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn former_owner_of_emptied_lease_is_explained() {
        let (coordinator, _n_requests) = coordinator();
        let (handler, view) = (coordinator.lease_handler(), coordinator.view());
        let [taken, emptied] = [lease_of_slot_0("b", 1), lease_of_slot_0("", 2)];
        handler(&Change::Added(taken.clone()), Origin::Live);
        handler(&Change::Updated { old: taken, new: emptied }, Origin::Live);
        let mut keys = (0..).map(|number| ObjectKey::new(Some("default"), &format!("web-{number}")));
        let key = keys.find(|key| coordinator.tenures.slots().slot_for(key) == 0).unwrap();
        let explained = view.explain(&key);
        assert!(explained.reason.contains("without a release, and b may be at work"), "{}", explained.reason);
        assert_eq!(explained.owner, "", "the Lease has no holder");
        sleep(Duration::from_secs(15)).await;
        let explained = view.explain(&key);
        assert!(!explained.reason.contains("at work"), "{}", explained.reason);
    }
}
