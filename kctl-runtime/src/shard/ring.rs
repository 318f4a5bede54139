//! The keys of a shard of kubernetes-controller-sharding: those whose object has the shard's label.
//!
//! Another program, the sharder, sets and removes the labels. [`Ring`] decides what to do with a key by the labels of
//! its cached object. It counts the reconciles and writes of each key, because a key is handed over only when none of
//! them can still be in progress. A task that a reconcile has spawned is not counted. Its writes are denied from the
//! hand-over on, as are writes of an earlier tenure of a slot.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{hash::hash_string, primary_tenures::PrimaryTenures};
use crate::{
    key::ObjectKey,
    object::{Kind, Stored},
    store::{Change, Share, SharedStore},
    writer::{ShardPermits, WritePermit},
};

/// Number of counters for writes without a response. Keys that share one wait for each other's writes when they are
/// handed over.
const COUNTERS: u32 = 1024;
/// Number of handed-over keys that triggers the removal of those that left all caches.
const HANDED_OVER_SWEEP: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RingLabels {
    /// Label of objects whose value is the name of their shard.
    pub(crate) shard_label: String,
    /// Label that the sharder sets to request the return of an object.
    pub(crate) drain_label: String,
    /// Name of this shard.
    pub(crate) shard: String,
}

#[derive(Debug)]
pub(crate) enum NextStep {
    /// Reconcile it. The value counts the reconcile until it is dropped.
    Reconcile(RunningReconcile),
    /// Forget it: the object belongs to another shard, or the cache is outdated.
    Forget,
    /// Look at it again later: another controller of the kind still reconciles the object. That controller may not be
    /// able to hand it over, because its cache may lose the object during the reconcile.
    Wait,
    /// Remove the labels, because no reconcile of the key runs any more.
    HandOver,
}

/// A primary: its kind and key. Controllers of one kind share its labels.
type Primary = (Kind, ObjectKey);

#[derive(Default)]
struct ShardReconciles {
    /// Number of reconciles that run. Invariant: at least 1, and none of an object in `handed_over`.
    running: HashMap<Primary, u32>,
    /// The last hand-over of each object. A cache that shows its version or an older one is outdated.
    handed_over: HashMap<Primary, HandOver>,
    /// Number of entries of `handed_over` after the last sweep. Caches of the whole kind keep the objects of other shards.
    n_swept: usize,
    /// The tenures of primaries. The tenure of an object in `handed_over` is over.
    tenures: PrimaryTenures,
    /// The caches of primaries, to forget handed-over keys that left them.
    primaries: Vec<(Kind, Arc<SharedStore>)>,
    n_handed_over: u64,
}

/// A hand-over of an object.
#[derive(Debug, Clone, Copy, Default)]
struct HandOver {
    /// The newest version of the object at which it was handed over.
    version: u64,
    /// Number of restored states of the caches. Versions from before a restore do not compare with those after it.
    n_restores: u64,
}

impl ShardReconciles {
    /// Returns how often the API server's state of a kind went back, as far as the caches of its controllers know.
    fn n_restores(&self, kind: &Kind) -> u64 {
        self.primaries.iter().filter(|(cached, _)| cached == kind).map(|(_, store)| store.n_restores()).sum()
    }

    /// Notes that an object is handed over at this version.
    fn note_hand_over(&mut self, primary: &Primary, version: u64) {
        let n_restores = self.n_restores(&primary.0);
        let last = self.handed_over.entry(primary.clone()).or_default();
        // An outdated cache must not lower the version, or it would begin a reconcile with a version between the two.
        let version = if last.n_restores == n_restores { version.max(last.version) } else { version };
        *last = HandOver { version, n_restores };
    }

    /// Returns `true` if a cache with this version of an object does not show its hand-over.
    fn is_outdated(&self, primary: &Primary, version: Option<u64>) -> bool {
        let last = self.handed_over.get(primary).filter(|last| version <= Some(last.version));
        last.is_some_and(|last| last.n_restores == self.n_restores(&primary.0))
    }

    /// Forgets the tenures of primaries that left all caches and are not reconciled.
    fn sweep_tenures(&mut self) {
        let Self { tenures, running, primaries, .. } = self;
        let is_running = |kind: &Kind, key: &ObjectKey| running.contains_key(&(kind.clone(), key.clone()));
        tenures.sweep(|kind, key| is_cached(primaries, kind, key) || is_running(kind, key));
    }

    /// Checks the invariants after a change of one primary.
    fn check(&self, primary: &Primary) {
        let n_running = self.running.get(primary);
        debug_assert!(n_running.is_none_or(|n| *n > 0), "the last reconcile that ends removes its entry");
        let is_handed_over = self.handed_over.contains_key(primary);
        debug_assert!(
            n_running.is_none() || !is_handed_over,
            "the next shard begins when this one has ended its reconciles"
        );
    }
}

/// Returns `true` if one of the caches has this primary.
fn is_cached(primaries: &[(Kind, Arc<SharedStore>)], kind: &Kind, key: &ObjectKey) -> bool {
    primaries.iter().any(|(cached, store)| cached == kind && store.get(key).is_some())
}

/// One shard of a controller ring.
pub(crate) struct Ring {
    labels: RingLabels,
    lease: WritePermit,
    /// The same permit with a separate count of writes, for the keys of each counter.
    counters: Mutex<BTreeMap<u32, WritePermit>>,
    state: Arc<Mutex<ShardReconciles>>,
}

/// A reconcile that runs.
pub(crate) struct RunningReconcile {
    state: Arc<Mutex<ShardReconciles>>,
    primary: Option<Primary>,
    tenure: u64,
}

impl RunningReconcile {
    /// Returns the number of the tenure of its primary. Outside of this tenure it must not write.
    pub(super) fn tenure(&self) -> u64 {
        self.tenure
    }
}

impl fmt::Debug for RunningReconcile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunningReconcile").field(&self.primary).finish()
    }
}

impl Drop for RunningReconcile {
    fn drop(&mut self) {
        let Some(primary) = self.primary.take() else { return };
        let mut state = self.state.lock();
        if let Some(running) = state.running.get_mut(&primary) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&primary);
            }
        }
        state.check(&primary);
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("labels", &self.labels).finish_non_exhaustive()
    }
}

impl RingLabels {
    pub(crate) fn selector(&self) -> String {
        format!("{}={}", self.shard_label, self.shard)
    }

    /// Returns `true` if the sharder has labelled the object for this shard.
    fn belongs_to_shard(&self, object: &Stored) -> bool {
        object.meta().labels.get(&self.shard_label).is_some_and(|shard| shard == self.shard)
    }

    /// Returns `true` if the sharder has labelled the object for another shard.
    pub(crate) fn is_assigned_elsewhere(&self, object: &Stored) -> bool {
        object.meta().labels.get(&self.shard_label).is_some() && !self.belongs_to_shard(object)
    }

    /// Returns `true` if the sharder has requested the return of the object.
    pub(crate) fn is_drained(&self, object: &Stored) -> bool {
        object.meta().labels.get(&self.drain_label).is_some()
    }

    /// Returns `true` if this shard keeps the object: the sharder has not requested its return either.
    pub(crate) fn keeps(&self, object: &Stored) -> bool {
        self.belongs_to_shard(object) && !self.is_drained(object)
    }

    /// Returns `true` if an object with these labels is assigned to a shard.
    pub(crate) fn are_assigned(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.contains_key(&self.shard_label)
    }

    /// Assigns an object to this shard before it is created. The webhook skips objects that have the label.
    pub(crate) fn assign(&self, labels: &mut BTreeMap<String, String>) {
        labels.insert(self.shard_label.clone(), self.shard.clone());
    }

    /// Returns the merge patch that assigns an existing object to this shard. It fails if the object has changed since.
    pub(crate) fn assign_patch(&self, uid: Option<&str>, resource_version: Option<&str>) -> Value {
        json!({ "metadata": {
            "uid": uid, "resourceVersion": resource_version, "labels": { &self.shard_label: &self.shard },
        } })
    }

    /// Returns `true` for a change with which the sharder assigns an object to this shard, requests its return, or withdraws
    /// that request.
    ///
    /// Only a cache of the whole kind has an object before it is assigned. The same shard may get an object back at once.
    /// Changes before the assignment, or during the hand-over, have then queued nothing.
    pub(crate) fn changes_assignment(&self, change: &Change<Stored>) -> bool {
        match change {
            Change::Added(new) => self.is_drained(new),
            Change::Updated { old, new } => {
                let is_assigned = self.belongs_to_shard(new) && !self.belongs_to_shard(old);
                is_assigned || self.is_drained(new) != self.is_drained(old)
            }
            Change::Deleted { .. } => false,
        }
    }

    /// Returns the merge patch that gives an object back. It fails if the object has changed since.
    pub(crate) fn hand_over_patch(&self, object: &Stored) -> Value {
        json!({ "metadata": {
            "resourceVersion": object.meta().resource_version.to_string(),
            "labels": { &self.shard_label: null, &self.drain_label: null },
        } })
    }

    /// Returns `true` for the labels of this ring and of others: they differ after the slash.
    fn is_ring_label(&self, label: &str) -> bool {
        let prefix = label.split_once('/').map(|(prefix, _ring)| prefix);
        [&self.shard_label, &self.drain_label].into_iter().any(|own| {
            let own_prefix = own.split_once('/').map(|(prefix, _ring)| prefix);
            label == own || (prefix.is_some() && prefix == own_prefix)
        })
    }

    /// Removes the labels of all rings from an object that this program creates or applies.
    ///
    /// Code that copies the labels of the primary would otherwise own them by server-side apply, and set them back after
    /// a sharder has moved the object. The primary may belong to the ring of another program as well.
    pub(crate) fn strip(&self, metadata: &mut Value) {
        let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) else { return };
        labels.retain(|label, _value| !self.is_ring_label(label));
    }

    /// Does the same with the labels of a typed object.
    pub(crate) fn strip_map(&self, labels: &mut BTreeMap<String, String>) {
        labels.retain(|label, _value| !self.is_ring_label(label));
    }
}

impl Ring {
    pub(crate) fn new(labels: RingLabels, lease: WritePermit) -> Self {
        Self { labels, lease, counters: Mutex::default(), state: Arc::default() }
    }

    pub(crate) fn labels(&self) -> &RingLabels {
        &self.labels
    }

    pub(crate) fn n_handed_over(&self) -> u64 {
        self.state.lock().n_handed_over
    }

    pub(crate) fn add_primaries(&self, kind: &Kind, store: &Arc<SharedStore>) {
        self.state.lock().primaries.push((kind.clone(), store.clone()));
    }

    /// Decides what to do with the key of a cached object.
    ///
    /// The decision takes effect under the same lock. A reconcile that begins is counted. Once a hand-over has begun, a
    /// cache with an older state of the object does not start another reconcile. A cache that does not know yet that the
    /// object has come back does not end its tenure.
    pub(crate) fn next_step(&self, kind: &Kind, object: &Stored) -> NextStep {
        let mut state = self.state.lock();
        if !self.labels.belongs_to_shard(object) {
            if !self.has_come_back(&state, kind, object) {
                state.tenures.end(kind, object.key());
            }
            return NextStep::Forget;
        }
        let (primary, version) = ((kind.clone(), object.key().clone()), object.meta().revision());
        if self.labels.is_drained(object) {
            if self.has_come_back(&state, kind, object) {
                return NextStep::Forget;
            }
            if state.running.contains_key(&primary) {
                return NextStep::Wait;
            }
            // Before the hand-over looks for writes in flight, so that none begins after that.
            state.tenures.end(kind, object.key());
            if let Some(version) = version {
                state.note_hand_over(&primary, version);
            }
            state.check(&primary);
            return NextStep::HandOver;
        }
        if state.is_outdated(&primary, version) {
            return NextStep::Forget;
        }
        state.handed_over.remove(&primary);
        if state.tenures.is_sweep_due() {
            state.sweep_tenures();
        }
        let tenure = state.tenures.begin(kind, object.key());
        *state.running.entry(primary.clone()).or_default() += 1;
        state.check(&primary);
        NextStep::Reconcile(RunningReconcile { state: self.state.clone(), primary: Some(primary), tenure })
    }

    /// Returns `true` if a cache of another controller has a newer state of a primary, which is to be reconciled here.
    fn has_come_back(&self, state: &ShardReconciles, kind: &Kind, object: &Stored) -> bool {
        let caches = state.primaries.iter().filter(|(cached, _)| cached == kind);
        caches.filter_map(|(_, store)| store.get(object.key())).any(|newer| {
            let is_newer = newer.meta().revision() > object.meta().revision();
            is_newer && self.labels.belongs_to_shard(&newer) && !self.labels.is_drained(&newer)
        })
    }

    /// Ends the tenure of a primary that has left the cache of a controller: it was deleted, or another shard has it.
    /// The tenure continues if another controller still reconciles it, or has it in a cache with other selectors.
    pub(crate) fn end_if_idle(&self, kind: &Kind, key: &ObjectKey) {
        let mut state = self.state.lock();
        let is_running = state.running.contains_key(&(kind.clone(), key.clone()));
        if !is_running && !is_cached(&state.primaries, kind, key) {
            state.tenures.end(kind, key);
        }
    }

    /// Returns the time until which a write of this key may be in flight, `None` if all were answered or are over.
    pub(crate) fn unresolved_until(&self, key: &ObjectKey) -> Option<Instant> {
        self.counter(self.slot(key)).unresolved_until()
    }

    /// Returns the permit of the keys that share a counter.
    fn counter(&self, slot: u32) -> WritePermit {
        self.counters.lock().entry(slot).or_insert_with(|| self.lease.child()).clone()
    }

    /// Counts a hand-over: the API server has removed the labels. Forgets handed-over keys that left all caches, once
    /// there are many.
    pub(crate) fn handed_over(&self) {
        let mut state = self.state.lock();
        state.n_handed_over += 1;
        // The bound doubles, so that the sweeps of many hand-overs cost a constant time for each.
        if state.handed_over.len() >= HANDED_OVER_SWEEP.max(2 * state.n_swept) {
            let ShardReconciles { handed_over, primaries, n_swept, .. } = &mut *state;
            handed_over.retain(|(kind, key), _last| is_cached(primaries, kind, key));
            *n_swept = handed_over.len();
        }
    }
}

/// Counters take the place of slots: the keys of a counter share a write permit. Each primary has its own tenures. The
/// patch that hands a key over belongs to no tenure, so 0 is granted.
impl ShardPermits for Ring {
    fn slot(&self, key: &ObjectKey) -> u32 {
        u32::try_from(hash_string(&key.to_string()) % u64::from(COUNTERS)).unwrap_or_default()
    }

    fn common(&self) -> WritePermit {
        self.lease.clone()
    }

    fn permit_of_slot(&self, slot: u32, tenure: u64) -> Option<WritePermit> {
        let is_present = tenure == 0 || self.state.lock().tenures.is_present(tenure);
        is_present.then(|| self.counter(slot))
    }
}

/// The part of a kind that a cache with the label of a shard has.
///
/// Only cached objects are known to belong to this shard. Any other object may belong to another shard, or not exist.
pub(crate) struct LabelledShare(pub(crate) Arc<SharedStore>);

impl Share for LabelledShare {
    fn has(&self, key: &ObjectKey) -> bool {
        self.0.get(key).is_some()
    }

    fn has_namespace(&self, _namespace: &str) -> bool {
        false
    }

    /// The API server selects by labels, so the list of a shard without keys is empty anyway.
    fn is_empty(&self) -> bool {
        false
    }

    fn n_gained(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio::sync::watch;

    use super::*;
    use crate::{
        store::Delta,
        writer::{ApiError, LeaseState},
    };

    const TIMEOUT: Duration = Duration::from_secs(5);
    const MARGIN: Duration = Duration::from_secs(1);

    fn held_for(seconds: u64) -> LeaseState {
        LeaseState::HeldUntil(Instant::now() + Duration::from_secs(seconds))
    }

    /// Returns the election and the permit of a shard whose Lease is valid for this long, and the shard.
    fn shard(seconds: u64) -> (watch::Sender<LeaseState>, WritePermit, Arc<Ring>) {
        let (election, state) = watch::channel(held_for(seconds));
        let labels = RingLabels { shard_label: "shard".into(), drain_label: "drain".into(), shard: "a".into() };
        let ring = Arc::new(Ring::new(labels, WritePermit::from_lease(state, TIMEOUT, MARGIN)));
        (election, WritePermit::from_shards(ring.clone()), ring)
    }

    /// Returns a version of an object with these labels.
    fn object(name: &str, version: u64, labels: &Value) -> Stored {
        let metadata = json!({
            "namespace": "default", "name": name, "uid": name, "resourceVersion": version.to_string(), "labels": labels,
        });
        Stored::accept(&Kind::of::<ConfigMap>(), &json!({ "metadata": metadata }).to_string()).unwrap()
    }

    fn begin(ring: &Ring, object: &Stored) -> RunningReconcile {
        match ring.next_step(&Kind::of::<ConfigMap>(), object) {
            NextStep::Reconcile(running) => running,
            step => panic!("{step:?}"),
        }
    }

    async fn is_granted(permit: &WritePermit) -> bool {
        match permit.acquire("patch").await {
            Ok(guard) => {
                guard.resolve();
                true
            }
            Err(ApiError::NotLeading { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn returned_key_grants_nothing_to_earlier_work() {
        let (_election, permit, ring) = shard(60);
        let (mine, drained) = (json!({ "shard": "a" }), json!({ "shard": "a", "drain": "true" }));
        let key = object("web", 1, &mine).key().clone();
        let mut names = (0..).map(|number| format!("other-{number}"));
        let other = names.find(|name| ring.slot(&ObjectKey::new(Some("default"), name)) == ring.slot(&key)).unwrap();
        let other = object(&other, 1, &mine);
        let neighbour = begin(&ring, &other);
        let running = begin(&ring, &object("web", 1, &mine));
        let earlier = permit.for_key(&key, running.tenure());
        drop(running);
        assert!(is_granted(&earlier).await, "a task that it has spawned, before the hand-over");
        assert!(matches!(ring.next_step(&Kind::of::<ConfigMap>(), &object("web", 2, &drained)), NextStep::HandOver));
        assert!(!is_granted(&earlier).await, "the hand-over has begun");
        assert!(is_granted(&permit.for_key(&key, 0)).await, "the patch of the hand-over");
        let running = begin(&ring, &object("web", 4, &mine));
        assert!(!is_granted(&earlier).await, "another shard wrote");
        assert!(is_granted(&permit.for_key(&key, running.tenure())).await);
        assert!(is_granted(&permit.for_key(other.key(), neighbour.tenure())).await, "it shares the counter");
    }

    #[tokio::test(start_paused = true)]
    async fn write_that_waits_is_denied_by_hand_over() {
        let (election, permit, ring) = shard(5);
        let running = begin(&ring, &object("web", 1, &json!({ "shard": "a" })));
        let spawned = permit.for_key(object("web", 1, &json!({})).key(), running.tenure());
        drop(running);
        let waiting = tokio::spawn(async move { is_granted(&spawned).await });
        tokio::task::yield_now().await;
        let drained = object("web", 2, &json!({ "shard": "a", "drain": "true" }));
        assert!(matches!(ring.next_step(&Kind::of::<ConfigMap>(), &drained), NextStep::HandOver));
        election.send_replace(held_for(60));
        assert!(!waiting.await.unwrap());
        assert_eq!(ring.unresolved_until(drained.key()), None);
    }

    #[test]
    fn primary_that_left_the_cache_ends_its_tenure() {
        let (_election, _permit, ring) = shard(60);
        let (kind, web) = (Kind::of::<ConfigMap>(), object("web", 1, &json!({ "shard": "a" })));
        let is_present = |tenure| ring.state.lock().tenures.is_present(tenure);
        let (first, second) = (begin(&ring, &web), begin(&ring, &web));
        let tenure = first.tenure();
        assert_eq!(second.tenure(), tenure, "two controllers reconcile it");
        drop(first);
        ring.end_if_idle(&kind, web.key());
        assert!(is_present(tenure), "one of them still does");
        drop(second);
        ring.end_if_idle(&kind, web.key());
        assert!(!is_present(tenure));
        let tenure = begin(&ring, &web).tenure();
        assert!(matches!(ring.next_step(&kind, &object("web", 2, &json!({ "shard": "b" }))), NextStep::Forget));
        assert!(!is_present(tenure), "another shard has it");
    }

    #[test]
    fn labels_of_all_rings_are_removed() {
        let labels = RingLabels {
            shard_label: "shard.example.com/a".into(),
            drain_label: "drain.example.com/a".into(),
            shard: "a".into(),
        };
        let names = ["shard.example.com/a", "drain.example.com/a", "shard.example.com/b", "drain.example.com/b"];
        let others = ["app", "example.com/a", "shard.example.com", "drain.example.com.au/a"];
        let mut typed: BTreeMap<String, String> =
            names.iter().chain(&others).map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let mut metadata = json!({ "labels": typed });
        labels.strip(&mut metadata);
        labels.strip_map(&mut typed);
        assert!(typed.len() == others.len() && others.iter().all(|name| typed.contains_key(*name)), "{typed:?}");
        assert_eq!(metadata, json!({ "labels": typed }));
    }

    #[test]
    fn drained_or_foreign_object_is_not_kept() {
        let (_election, _permit, ring) = shard(60);
        for (labels, is_kept) in [
            (json!({ "shard": "a" }), true),
            (json!({ "shard": "a", "drain": "true" }), false),
            (json!({ "shard": "b" }), false),
            (json!({}), false),
        ] {
            assert_eq!(ring.labels().keeps(&object("web", 1, &labels)), is_kept, "{labels}");
        }
    }

    #[test]
    fn assigned_and_drained_objects_are_queued() {
        let (_election, _permit, ring) = shard(60);
        let [none, other, mine] = [json!({}), json!({ "shard": "b" }), json!({ "shard": "a" })];
        let drained = json!({ "shard": "a", "drain": "true" });
        for (old, new, is_queued) in [
            (&none, &mine, true),
            (&other, &mine, true),
            (&mine, &drained, true),
            (&drained, &mine, true),
            (&mine, &mine, false),
            (&mine, &other, false),
            (&none, &other, false),
        ] {
            let [before, after] =
                [(1, old), (2, new)].map(|(version, labels)| Arc::new(object("web", version, labels)));
            let change = Change::Updated { old: before, new: after };
            assert_eq!(ring.labels().changes_assignment(&change), is_queued, "{old} {new}");
        }
    }

    /// Two controllers of one kind have caches with other selectors, and their `owns` queue the same owners.
    #[tokio::test(start_paused = true)]
    async fn primary_in_another_cache_keeps_its_tenure() {
        let (_election, _permit, ring) = shard(60);
        let labels = json!({ "shard": "a" });
        let (kind, web) = (Kind::of::<ConfigMap>(), Arc::new(object("web", 1, &labels)));
        let stores = [SharedStore::default(), SharedStore::default()].map(Arc::new);
        for (store, objects) in stores.iter().zip([Vec::new(), vec![web.clone()]]) {
            ring.add_primaries(&kind, store);
            tokio::spawn(store.clone().write());
            store.push_and_wait(Delta::Replace(None, objects, "1".into())).await;
        }
        let is_present = |tenure| ring.state.lock().tenures.is_present(tenure);
        let tenure = begin(&ring, &web).tenure();
        ring.end_if_idle(&kind, web.key());
        assert!(is_present(tenure), "the second cache has it");
        stores[1].push_and_wait(Delta::Delete(Arc::new(object("web", 2, &labels)))).await;
        ring.end_if_idle(&kind, web.key());
        assert!(!is_present(tenure));
    }

    /// The cache of the controller that reconciles it has other selectors, and has lost the object when the reconcile ends.
    #[test]
    fn hand_over_waits_for_reconcile_of_another_controller() {
        let (_election, _permit, ring) = shard(60);
        let (kind, drained) = (Kind::of::<ConfigMap>(), object("web", 2, &json!({ "shard": "a", "drain": "true" })));
        let running = begin(&ring, &object("web", 1, &json!({ "shard": "a" })));
        assert!(matches!(ring.next_step(&kind, &drained), NextStep::Wait));
        drop(running);
        ring.end_if_idle(&kind, drained.key());
        assert!(matches!(ring.next_step(&kind, &drained), NextStep::HandOver));
    }

    #[tokio::test(start_paused = true)]
    async fn hand_overs_are_swept_when_they_have_doubled() {
        let (_election, _permit, ring) = shard(60);
        let (kind, store) = (Kind::of::<ConfigMap>(), Arc::new(SharedStore::default()));
        let drained = json!({ "shard": "a", "drain": "true" });
        let hand_over = |number: usize| {
            let object = object(&format!("web-{number}"), 1, &drained);
            assert!(matches!(ring.next_step(&kind, &object), NextStep::HandOver));
            ring.handed_over();
            ring.state.lock().handed_over.len()
        };
        // A cache of the whole kind has them still.
        let n_cached = HANDED_OVER_SWEEP - 1;
        let cached = (0..n_cached).map(|number| Arc::new(object(&format!("web-{number}"), 2, &json!({})))).collect();
        ring.add_primaries(&kind, &store);
        tokio::spawn(store.clone().write());
        store.push_and_wait(Delta::Replace(None, cached, "2".into())).await;
        let counts: Vec<_> = (0..=2 * n_cached).map(hand_over).collect();
        assert_eq!(counts[n_cached - 1..n_cached + 2], [n_cached, n_cached, n_cached + 1]);
        assert_eq!(counts.last(), Some(&n_cached), "twice as many");
    }

    /// A task that a reconcile has spawned works in the tenure, while the cache of a second controller is older than the tenure.
    #[tokio::test(start_paused = true)]
    async fn outdated_cache_ends_no_later_tenure() {
        let (_election, _permit, ring) = shard(60);
        let (kind, store) = (Kind::of::<ConfigMap>(), Arc::new(SharedStore::default()));
        let (mine, drained) = (json!({ "shard": "a" }), json!({ "shard": "a", "drain": "true" }));
        let current = Arc::new(object("web", 4, &mine));
        ring.add_primaries(&kind, &store);
        tokio::spawn(store.clone().write());
        store.push_and_wait(Delta::Replace(None, vec![current.clone()], "4".into())).await;
        let is_present = |tenure| ring.state.lock().tenures.is_present(tenure);
        let tenure = begin(&ring, &current).tenure();
        for labels in [&drained, &json!({}), &json!({ "shard": "b" })] {
            assert!(matches!(ring.next_step(&kind, &object("web", 3, labels)), NextStep::Forget), "{labels}");
            assert!(is_present(tenure), "{labels}");
        }
        assert!(matches!(ring.next_step(&kind, &object("web", 5, &drained)), NextStep::HandOver));
        assert!(!is_present(tenure));
    }

    /// The first cache has lost the object after its hand-over. The second one shows how it was handed over before, and then
    /// how it came back in between.
    #[test]
    fn outdated_hand_over_allows_no_reconcile() {
        let (_election, _permit, ring) = shard(60);
        let (kind, mine) = (Kind::of::<ConfigMap>(), json!({ "shard": "a" }));
        let drained = |version| object("web", version, &json!({ "shard": "a", "drain": "true" }));
        for version in [5, 2] {
            assert!(matches!(ring.next_step(&kind, &drained(version)), NextStep::HandOver), "{version}");
        }
        assert!(matches!(ring.next_step(&kind, &object("web", 4, &mine)), NextStep::Forget), "another shard has it");
        drop(begin(&ring, &object("web", 7, &mine)));
    }

    /// The backup is from before the hand-over, so the versions of its objects are lower.
    #[tokio::test(start_paused = true)]
    async fn key_in_restored_backup_is_reconciled() {
        let (_election, _permit, ring) = shard(60);
        let (kind, store) = (Kind::of::<ConfigMap>(), Arc::new(SharedStore::default()));
        let (mine, drained) = (json!({ "shard": "a" }), json!({ "shard": "a", "drain": "true" }));
        ring.add_primaries(&kind, &store);
        tokio::spawn(store.clone().write());
        let (earlier, last) = (Arc::new(object("web", 4, &mine)), Arc::new(object("web", 9, &drained)));
        store.push_and_wait(Delta::Replace(None, vec![last.clone()], "9".into())).await;
        assert!(matches!(ring.next_step(&kind, &last), NextStep::HandOver));
        assert!(matches!(ring.next_step(&kind, &earlier), NextStep::Forget), "an outdated cache of another controller");
        store.push_and_wait(Delta::Restore(None, vec![earlier.clone()], "5".into())).await;
        drop(begin(&ring, &earlier));
        assert!(matches!(ring.next_step(&kind, &object("web", 6, &drained)), NextStep::HandOver));
        assert!(matches!(ring.next_step(&kind, &object("web", 5, &mine)), NextStep::Forget), "outdated again");
    }
}
