//! Tenures: the times during which this replica owns a slot.

use std::{fmt, pin::pin, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::Slots;
use crate::{
    key::ObjectKey,
    store::Share,
    writer::{ShardPermits, WritePermit},
};

/// The stages of one tenure. It only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Keys are given out.
    Serving,
    /// No further key is given out; running reconciles finish.
    Draining,
    /// Reconciles that still run are cut off.
    Over,
}

/// One tenure of one slot: from the moment at which this replica holds its Lease until it does not.
#[derive(Debug)]
pub(crate) struct Tenure {
    slot: u32,
    /// Distinguishes the tenures of this process, of all slots.
    number: u64,
    stage: watch::Sender<Stage>,
    permit: WritePermit,
}

impl Tenure {
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    pub(crate) fn permit(&self) -> &WritePermit {
        &self.permit
    }

    /// Returns `true` while keys of the slot are given out.
    pub(crate) fn serves(&self) -> bool {
        *self.stage.borrow() == Stage::Serving
    }

    /// Runs a reconcile, and returns `None` if the tenure ends before it does.
    ///
    /// The next owner may begin when this tenure is over, so no reconcile of it may continue.
    pub(crate) async fn run<T>(&self, reconcile: impl Future<Output = T>) -> Option<T> {
        let mut stage = self.stage.subscribe();
        tokio::select! {
            biased;
            _over = stage.wait_for(|stage| *stage == Stage::Over) => None,
            result = reconcile => Some(result),
        }
    }
}

/// The state of a slot in this replica, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Another replica should own it.
    Other,
    /// This replica should own it and waits for its Lease.
    Waiting,
    /// This replica owns it.
    Owned,
    /// This replica hands it over.
    HandingOver,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Other => "other",
            Self::Waiting => "waiting",
            Self::Owned => "owned",
            Self::HandingOver => "handing over",
        })
    }
}

struct SlotTable {
    /// By slot. Invariant: `Owned` or `HandingOver` exactly while the slot has a tenure.
    phases: Vec<Phase>,
    /// By slot. Invariant: the number of tenures is `n_begun - n_ended`.
    tenures: Vec<Option<Arc<Tenure>>>,
    /// Number of tenures that began. Invariant: at least the number of each tenure, so a cache that was listed when this
    /// many had begun has the objects of all of them.
    n_begun: u64,
    n_ended: u64,
    n_changes: u64,
}

impl SlotTable {
    /// Checks the invariants after a change of one slot.
    fn check(&self, idx: usize) {
        let n_tenures = self.tenures.iter().flatten().count() as u64;
        debug_assert_eq!(
            self.n_begun,
            self.n_ended + n_tenures,
            "a tenure ends before the next one of its slot begins"
        );
        let is_owned = matches!(self.phases[idx], Phase::Owned | Phase::HandingOver);
        debug_assert_eq!(is_owned, self.tenures[idx].is_some(), "a slot is owned during a tenure");
        let is_in_place = |tenure: &Arc<Tenure>| tenure.slot as usize == idx && tenure.number <= self.n_begun;
        debug_assert!(self.tenures[idx].as_ref().is_none_or(is_in_place), "a tenure is of its slot, and has begun");
    }
}

/// The slots of a program, and the tenure of each one that this replica owns.
pub(crate) struct Tenures {
    slots: Slots,
    /// The permit of the Lease of the settings, under which all slots are held.
    common: WritePermit,
    state: Mutex<SlotTable>,
    /// Notified of each change. It wakes the controllers in the order in which they wait, unlike a `watch` channel: a
    /// simulated run has to repeat itself.
    changed: Notify,
}

impl fmt::Debug for Tenures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenures").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Tenures {
    pub(crate) fn new(slots: Slots, common: WritePermit) -> Self {
        let n = slots.all().len();
        let state =
            SlotTable { phases: vec![Phase::Other; n], tenures: vec![None; n], n_begun: 0, n_ended: 0, n_changes: 0 };
        Self { slots, common, state: Mutex::new(state), changed: Notify::new() }
    }

    pub(crate) fn slots(&self) -> Slots {
        self.slots
    }

    /// Returns how often a slot has changed its phase or its tenure.
    pub(crate) fn n_changes(&self) -> u64 {
        self.state.lock().n_changes
    }

    /// Waits until a slot has changed since [`n_changes`](Self::n_changes) returned `n_seen`.
    pub(crate) async fn changed_since(&self, n_seen: u64) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.n_changes() != n_seen {
                return;
            }
            changed.await;
        }
    }

    /// Returns the phase of each slot.
    pub(crate) fn phases(&self) -> Vec<Phase> {
        self.state.lock().phases.clone()
    }

    /// Returns the number of tenures that began in this process.
    pub(crate) fn n_begun(&self) -> u64 {
        self.state.lock().n_begun
    }

    /// Returns the number of tenures that ended in this process.
    pub(crate) fn n_ended(&self) -> u64 {
        self.state.lock().n_ended
    }

    /// Returns the tenures during which keys are given out.
    pub(crate) fn serving(&self) -> Vec<Arc<Tenure>> {
        let state = self.state.lock();
        state.tenures.iter().flatten().filter(|tenure| tenure.serves()).cloned().collect()
    }

    /// Notes that this replica waits for the Lease of a slot.
    pub(crate) fn wait(&self, slot: u32) {
        self.change(slot, |state, idx| {
            debug_assert_eq!(state.phases[idx], Phase::Other, "one task at a time waits for a slot or owns it");
            state.phases[idx] = Phase::Waiting;
        });
    }

    /// Begins a tenure: the Lease of the slot is held, and `permit` follows it.
    pub(crate) fn begin(&self, slot: u32, permit: &WritePermit) -> Arc<Tenure> {
        let permit = permit.with_common(&self.common);
        self.change(slot, |state, idx| {
            state.n_begun += 1;
            let (number, stage) = (state.n_begun, watch::Sender::new(Stage::Serving));
            let tenure = Arc::new(Tenure { slot, number, stage, permit });
            state.tenures[idx] = Some(tenure.clone());
            state.phases[idx] = Phase::Owned;
            tenure
        })
    }

    /// Stops dispatching keys of a slot. Its running reconciles continue, and may write.
    pub(crate) fn drain(&self, tenure: &Tenure) {
        self.change(tenure.slot, |state, idx| {
            let before = tenure.stage.send_replace(Stage::Draining);
            debug_assert!(before <= Stage::Draining, "a tenure that is over does not begin again");
            let is_present = state.tenures[idx].as_ref().is_some_and(|present| present.number == tenure.number);
            debug_assert!(is_present, "the next tenure of a slot begins after the hand-over of this one");
            state.phases[idx] = Phase::HandingOver;
        });
    }

    /// Ends the tenure of a slot, if there is one, and cuts off what still runs.
    pub(crate) fn end(&self, slot: u32) {
        self.change(slot, |state, idx| {
            if let Some(tenure) = state.tenures[idx].take() {
                let before = tenure.stage.send_replace(Stage::Over);
                debug_assert!(before < Stage::Over, "a tenure ends once");
                state.n_ended += 1;
            }
            state.phases[idx] = Phase::Other;
        });
    }

    fn change<T>(&self, slot: u32, change: impl FnOnce(&mut SlotTable, usize) -> T) -> T {
        let changed = {
            let mut state = self.state.lock();
            state.n_changes += 1;
            let changed = change(&mut state, slot as usize);
            state.check(slot as usize);
            changed
        };
        self.changed.notify_waiters();
        changed
    }

    /// Returns the permit of the present tenure of a slot.
    pub(crate) fn current_permit(&self, slot: u32) -> Option<WritePermit> {
        self.get(slot).map(|tenure| tenure.permit.clone())
    }

    /// Returns the present tenure of a slot.
    pub(super) fn get(&self, slot: u32) -> Option<Arc<Tenure>> {
        self.state.lock().tenures[slot as usize].clone()
    }

    pub(super) fn number(tenure: &Tenure) -> u64 {
        tenure.number
    }
}

impl ShardPermits for Tenures {
    fn slot(&self, key: &ObjectKey) -> u32 {
        self.slots.slot_for(key)
    }

    fn common(&self) -> WritePermit {
        self.common.clone()
    }

    fn permit_of_slot(&self, slot: u32, tenure: u64) -> Option<WritePermit> {
        self.get(slot).filter(|current| current.number == tenure).map(|current| current.permit.clone())
    }
}

/// A replica caches the objects of a slot from the start of its tenure to its end, because its last reconciles read
/// them.
impl Share for Tenures {
    fn has(&self, key: &ObjectKey) -> bool {
        self.get(self.slots.slot_for(key)).is_some()
    }

    fn has_since(&self, key: &ObjectKey, n_gained: u64) -> bool {
        // The number of a tenure counts the tenures up to and including it.
        self.get(self.slots.slot_for(key)).is_some_and(|tenure| tenure.number <= n_gained)
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        self.slots.shard_by().keeps_namespaces() && self.has(&ObjectKey::new(Some(namespace), ""))
    }

    fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.n_begun == state.n_ended
    }

    fn n_gained(&self) -> u64 {
        self.n_begun()
    }

    fn n_moves(&self) -> u64 {
        let state = self.state.lock();
        state.n_begun + state.n_ended
    }

    fn shard_selector(&self) -> Option<String> {
        let owned: Vec<u32> = self.state.lock().tenures.iter().flatten().map(|tenure| tenure.slot).collect();
        self.slots.selector(owned)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::{
        shard::ShardBy,
        writer::{ApiError, LeaseState},
    };

    const TIMEOUT: Duration = Duration::from_secs(5);
    const MARGIN: Duration = Duration::from_secs(1);

    fn lease(seconds: u64) -> (watch::Sender<LeaseState>, WritePermit) {
        let until = Instant::now() + Duration::from_secs(seconds);
        let (sender, permission) = watch::channel(LeaseState::HeldUntil(until));
        (sender, WritePermit::from_lease(permission, TIMEOUT, MARGIN))
    }

    fn tenures(common: WritePermit) -> Arc<Tenures> {
        Arc::new(Tenures::new(Slots::new(4, ShardBy::Object), common))
    }

    /// Returns a key of the slot.
    fn key_of(slot: u32) -> ObjectKey {
        let slots = Slots::new(4, ShardBy::Object);
        let mut keys = (0..).map(|n| ObjectKey::new(Some("default"), &format!("web-{n}")));
        keys.find(|key| slots.slot_for(key) == slot).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn write_asks_the_lease_of_its_keys_slot() {
        let (_settings, common) = lease(60);
        let tenures = tenures(common);
        let permit = WritePermit::from_shards(tenures.clone());
        let (slot, of_slot) = lease(60);
        let number = tenures.begin(1, &of_slot).number;
        assert!(permit.for_key(&key_of(1), number).acquire("patch").await.is_ok());
        assert!(permit.for_key(&key_of(2), number).acquire("patch").await.is_err(), "another replica's slot");
        assert!(permit.acquire("create Event").await.is_ok(), "an event is about no slot");
        slot.send_replace(LeaseState::Lost);
        assert!(permit.for_key(&key_of(1), number).acquire("patch").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn regained_slot_grants_nothing_to_earlier_tenure() {
        let (_settings, common) = lease(60);
        let tenures = tenures(common);
        let permit = WritePermit::from_shards(tenures.clone());
        let ((_a, first), (_b, second)) = (lease(60), lease(60));
        let earlier = permit.for_key(&key_of(0), tenures.begin(0, &first).number);
        assert!(earlier.acquire("create").await.is_ok());
        tenures.end(0);
        assert!(matches!(earlier.acquire("create").await, Err(ApiError::NotLeading { .. })), "the slot is lost");
        let current = permit.for_key(&key_of(0), tenures.begin(0, &second).number);
        assert!(matches!(earlier.acquire("create").await, Err(ApiError::NotLeading { .. })), "another replica wrote");
        assert!(current.acquire("create").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn write_must_fit_into_both_leases() {
        for (settings, slot, granted) in [(6, 6, true), (5, 60, false), (60, 5, false)] {
            let ((_one, common), (_other, of_slot)) = (lease(settings), lease(slot));
            let tenures = tenures(common);
            let tenure = tenures.begin(0, &of_slot);
            let acquired = tenure.permit().acquire("patch").await;
            assert_eq!(acquired.is_ok(), granted, "{settings} s and {slot} s");
        }
    }

    #[tokio::test]
    async fn read_of_a_slot_waits_for_its_list() {
        use std::sync::atomic::{AtomicU64, Ordering};

        use k8s_openapi::api::core::v1::ConfigMap;

        use crate::{
            key::Key,
            panic::panic_text,
            store::{Part, Primaries, SharedStore, Store},
        };
        let tenures = tenures(WritePermit::always());
        let listed = Arc::<AtomicU64>::default();
        let part = Part::Primaries(Primaries::new(tenures.clone(), listed.clone()));
        let store = Store::<ConfigMap>::new(Arc::new(SharedStore::default())).of_part(Some(part));
        let read = |slot: u32| {
            let (store, key) = (store.clone(), Key::namespaced("default", &key_of(slot).name));
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.get(&key).is_some()));
            read.map_err(|panic| panic_text(&*panic))
        };
        let _first = tenures.begin(1, &WritePermit::always());
        assert!(read(1).unwrap_err().contains("has just gained the slot of default/web-"));
        listed.store(tenures.n_gained(), Ordering::Relaxed);
        assert_eq!(read(1), Ok(false), "it does not exist");
        let _second = tenures.begin(2, &WritePermit::always());
        assert!(read(2).unwrap_err().contains("has just gained"));
        assert!(read(3).unwrap_err().contains("caches only its share"));
        assert_eq!(read(1), Ok(false));
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_write_counts_for_its_slot_alone() {
        let (_settings, common) = lease(60);
        let tenures = tenures(common);
        let ((_a, of_0), (_b, of_1)) = (lease(60), lease(60));
        let (zero, one) = (tenures.begin(0, &of_0), tenures.begin(1, &of_1));
        let lost = zero.permit().acquire("patch").await.unwrap();
        drop(lost);
        assert_eq!(zero.permit().unresolved_until(), Some(Instant::now() + TIMEOUT + MARGIN));
        assert_eq!(one.permit().unresolved_until(), None);
        zero.permit().close();
        assert!(zero.permit().acquire("patch").await.is_err());
        assert!(one.permit().acquire("patch").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_a_tenure_cuts_off_its_reconcile() {
        let (_settings, common) = lease(60);
        let tenures = tenures(common);
        let (_slot, of_slot) = lease(60);
        let tenure = tenures.begin(0, &of_slot);
        tenures.drain(&tenure);
        assert!(!tenure.serves());
        assert_eq!(tenure.run(async { 1 }).await, Some(1), "what runs may finish");
        tenures.end(0);
        assert_eq!(tenure.run(std::future::pending::<u32>()).await, None);
        assert_eq!(tenures.phases()[0], Phase::Other);
    }
}
