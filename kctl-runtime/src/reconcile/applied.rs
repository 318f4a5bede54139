//! The state in which this process last applied each object, so that nothing is sent for an object that still has it.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::noop_writes::NOOP_AGAIN_AFTER;
use crate::{key::ObjectKey, object::Uid, source::WatchConfig};

/// Maximum number of remembered objects. Beyond it all are forgotten: each then costs one request.
const APPLIED_MAX: usize = 100_000;

/// The last state of each object, by the primary that desired it, its kind and cluster, and its uid. Objects that
/// `converge` no longer desires are removed, and so are the objects of a deleted primary.
///
/// A state counts only in the tenure of its primary in which it was applied. Another replica may have applied another
/// form since, and only the next apply removes the fields that this form had in addition. In a controller ring one
/// controller hands a primary over for all of its kind, so the others may not notice that it was away.
#[derive(Default)]
pub(crate) struct Applied(Mutex<AppliedObjects>);

#[derive(Default)]
struct AppliedObjects {
    by_primary: HashMap<ObjectKey, AppliedInTenure>,
    /// Number of objects in all maps of `by_primary`; at most [`APPLIED_MAX`], or as many as one primary desires of a
    /// kind if those are more.
    n_objects: usize,
}

/// The states of one primary.
struct AppliedInTenure {
    /// The tenure in which all of them were applied; 0 if keys never move. Invariant: it only grows.
    tenure: u64,
    kinds: HashMap<WatchConfig, AppliedStates>,
}

pub(super) type AppliedStates = HashMap<Uid, AppliedState>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AppliedState {
    /// A hash of the desired object.
    pub(super) desired: u64,
    /// The object as the API server stored it, if it is known. It detects an apply that would change nothing although the
    /// stored state differs from the applied one.
    pub(super) left: Option<LeftState>,
}

/// The state in which an apply left an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftState {
    hash: u64,
    since: Instant,
}

impl LeftState {
    pub(super) fn new(hash: u64) -> Self {
        Self { hash, since: Instant::now() }
    }

    /// Returns `true` if an object with this hash is still as the apply left it. It holds for [`NOOP_AGAIN_AFTER`] at most.
    pub(super) fn still_holds(self, hash: u64) -> bool {
        self.hash == hash && self.since.elapsed() < NOOP_AGAIN_AFTER
    }
}

impl Applied {
    /// Returns the state in which an object was applied last, if that was in this tenure.
    pub(super) fn last(
        &self,
        primary: &ObjectKey,
        tenure: u64,
        config: &WatchConfig,
        uid: &Uid,
    ) -> Option<AppliedState> {
        let objects = self.0.lock();
        let applied = objects.by_primary.get(primary).filter(|applied| applied.tenure == tenure)?;
        applied.kinds.get(config)?.get(uid).copied()
    }

    /// Remembers all that a primary desires of a kind, and forgets what it desired before.
    pub(super) fn record(&self, primary: &ObjectKey, tenure: u64, config: &WatchConfig, desired: AppliedStates) {
        let mut objects = self.0.lock();
        if !objects.enter(primary, tenure) {
            return;
        }
        let AppliedObjects { by_primary, n_objects } = &mut *objects;
        if let Some(before) = by_primary.get_mut(primary).and_then(|applied| applied.kinds.remove(config)) {
            *n_objects -= before.len();
        }
        if desired.is_empty() {
            return;
        }
        objects.make_room(desired.len());
        objects.n_objects += desired.len();
        objects.states(primary, tenure).insert(config.clone(), desired);
    }

    /// Records one object in addition to the others of its kind.
    pub(super) fn record_one(
        &self,
        primary: &ObjectKey,
        tenure: u64,
        config: &WatchConfig,
        uid: Uid,
        state: AppliedState,
    ) {
        let mut objects = self.0.lock();
        if !objects.enter(primary, tenure) {
            return;
        }
        let applied = objects.by_primary.get_mut(primary);
        if let Some(last) = applied.and_then(|applied| applied.kinds.get_mut(config)?.get_mut(&uid)) {
            *last = state;
            return;
        }
        objects.make_room(1);
        objects.n_objects += 1;
        objects.states(primary, tenure).entry(config.clone()).or_default().insert(uid, state);
    }

    pub(crate) fn forget(&self, primary: &ObjectKey) {
        self.0.lock().forget(primary);
    }

    /// Forgets the state of one object, because an apply of another form begins. The object may get that form even if the
    /// apply fails, or if the caller never gets its result.
    pub(super) fn forget_one(&self, primary: &ObjectKey, config: &WatchConfig, uid: &Uid) {
        let mut objects = self.0.lock();
        let AppliedObjects { by_primary, n_objects } = &mut *objects;
        let states = by_primary.get_mut(primary).and_then(|applied| applied.kinds.get_mut(config));
        if states.is_some_and(|states| states.remove(uid).is_some()) {
            *n_objects -= 1;
        }
    }

    /// Forgets the objects of primaries for which `keep` returns `false`, such as the primaries of a lost slot.
    pub(crate) fn retain(&self, keep: impl Fn(&ObjectKey) -> bool) {
        let mut objects = self.0.lock();
        let AppliedObjects { by_primary, n_objects } = &mut *objects;
        by_primary.retain(|primary, applied| {
            let is_kept = keep(primary);
            if !is_kept {
                *n_objects -= applied.n_objects();
            }
            is_kept
        });
    }

    /// Records an object that a primary desires.
    #[cfg(test)]
    pub(crate) fn add(&self, primary: &ObjectKey, config: &WatchConfig) {
        self.record_one(primary, 0, config, Uid::from("uid"), AppliedState { desired: 1, left: None });
    }

    /// Returns the primaries that desire remembered objects.
    #[cfg(test)]
    pub(crate) fn primaries(&self) -> Vec<ObjectKey> {
        self.0.lock().by_primary.keys().cloned().collect()
    }

    /// Returns the number of remembered objects.
    #[cfg(test)]
    fn len(&self) -> usize {
        let objects = self.0.lock();
        let counted: usize = objects.by_primary.values().map(AppliedInTenure::n_objects).sum();
        assert_eq!(counted, objects.n_objects);
        counted
    }
}

impl AppliedInTenure {
    fn n_objects(&self) -> usize {
        self.kinds.values().map(HashMap::len).sum()
    }
}

impl AppliedObjects {
    /// Forgets the states of earlier tenures of a primary. Returns `false` if a later one has begun: then the response to
    /// a write of the earlier tenure arrived late.
    fn enter(&mut self, primary: &ObjectKey, tenure: u64) -> bool {
        match self.by_primary.get(primary).map(|applied| applied.tenure) {
            Some(last) if last < tenure => self.forget(primary),
            Some(last) if last > tenure => return false,
            _ => {}
        }
        true
    }

    /// Returns the states of a primary, after [`enter`](Self::enter).
    fn states(&mut self, primary: &ObjectKey, tenure: u64) -> &mut HashMap<WatchConfig, AppliedStates> {
        let begin = || AppliedInTenure { tenure, kinds: HashMap::new() };
        let applied = self.by_primary.entry(primary.clone()).or_insert_with(begin);
        debug_assert_eq!(applied.tenure, tenure, "states of two tenures would be taken for states of one");
        &mut applied.kinds
    }

    fn forget(&mut self, primary: &ObjectKey) {
        self.n_objects -= self.by_primary.remove(primary).map_or(0, |applied| applied.n_objects());
    }

    /// Forgets everything if `n` more objects would be too many.
    fn make_room(&mut self, n: usize) {
        if self.n_objects + n > APPLIED_MAX {
            self.by_primary.clear();
            self.n_objects = 0;
        }
        debug_assert!(self.n_objects + n <= APPLIED_MAX.max(n), "memory is bounded however many primaries exist");
    }
}

/// Returns a hash of a JSON value. Equal values have equal hashes, because their maps are sorted.
pub(super) fn hash_of(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};

    use super::*;

    fn key(n: usize) -> ObjectKey {
        ObjectKey::new(None, &n.to_string())
    }

    fn states(uids: &[&str]) -> AppliedStates {
        uids.iter().map(|uid| (Uid::from(*uid), state(1))).collect()
    }

    fn state(desired: u64) -> AppliedState {
        AppliedState { desired, left: None }
    }

    #[test]
    fn only_what_is_still_desired_is_remembered() {
        let (applied, pods, configs) = (Applied::default(), WatchConfig::of::<Pod>(), WatchConfig::of::<ConfigMap>());
        let knows =
            |config: &WatchConfig, uid: &str, n| applied.last(&key(0), 0, config, &uid.into()) == Some(state(n));
        applied.record(&key(0), 0, &pods, states(&["a", "b"]));
        applied.record(&key(0), 0, &configs, states(&["c"]));
        assert!(knows(&pods, "a", 1) && knows(&pods, "b", 1) && knows(&configs, "c", 1));
        assert!(!knows(&pods, "a", 2), "another state");
        // Another client deleted `a`, and created a new object of the same name.
        applied.record(&key(0), 0, &pods, states(&["a2", "b"]));
        assert!(!knows(&pods, "a", 1) && knows(&pods, "a2", 1) && knows(&configs, "c", 1));
        assert_eq!(applied.len(), 3);
        applied.record(&key(0), 0, &pods, AppliedStates::new());
        assert_eq!(applied.len(), 1);
        applied.forget(&key(0));
        assert!(!knows(&configs, "c", 1));
        assert_eq!(applied.len(), 0);
    }

    #[test]
    fn recording_one_object_keeps_the_others() {
        let (applied, pods) = (Applied::default(), WatchConfig::of::<Pod>());
        let (here, edge) = (pods.clone(), pods.on("edge"));
        let last = |config: &WatchConfig, uid: &str| applied.last(&key(0), 0, config, &uid.into());
        applied.record_one(&key(0), 0, &here, "a".into(), state(1));
        applied.record_one(&key(0), 0, &here, "b".into(), state(1));
        applied.record_one(&key(0), 0, &here, "a".into(), state(2));
        applied.record_one(&key(0), 0, &edge, "c".into(), state(3));
        assert_eq!((last(&here, "a"), last(&here, "b")), (Some(state(2)), Some(state(1))));
        assert_eq!(applied.len(), 3);
        applied.record(&key(0), 0, &here, states(&["d"]));
        assert_eq!((last(&here, "a"), last(&edge, "c")), (None, Some(state(3))), "another cluster is another kind");
        assert_eq!(applied.len(), 2);
    }

    #[test]
    fn forgetting_one_object_keeps_the_others() {
        let (applied, pods, configs) = (Applied::default(), WatchConfig::of::<Pod>(), WatchConfig::of::<ConfigMap>());
        applied.record(&key(0), 0, &pods, states(&["a", "b"]));
        applied.record(&key(1), 0, &pods, states(&["a"]));
        for (primary, config, uid) in [(0, &pods, "a"), (0, &pods, "a"), (0, &configs, "b"), (2, &pods, "b")] {
            applied.forget_one(&key(primary), config, &uid.into());
        }
        let last = |primary, uid: &str| applied.last(&key(primary), 0, &pods, &uid.into());
        assert_eq!((last(0, "a"), last(0, "b"), last(1, "a")), (None, Some(state(1)), Some(state(1))));
        assert_eq!(applied.len(), 2);
    }

    #[test]
    fn objects_of_other_primaries_are_forgotten() {
        let (applied, pods, configs) = (Applied::default(), WatchConfig::of::<Pod>(), WatchConfig::of::<ConfigMap>());
        for n in 0..2 {
            applied.record(&key(n), 0, &pods, states(&["a", "b"]));
            applied.record(&key(n), 0, &configs, states(&["c"]));
        }
        applied.retain(|primary| *primary == key(1));
        assert_eq!(applied.len(), 3);
        assert_eq!(applied.last(&key(0), 0, &pods, &"a".into()), None);
        assert_eq!(applied.last(&key(1), 0, &pods, &"a".into()), Some(state(1)));
    }

    /// A task of an earlier tenure may get the response to its last write when the primary has come back.
    #[test]
    fn states_of_other_tenures_do_not_count() {
        let (applied, pods, configs) = (Applied::default(), WatchConfig::of::<Pod>(), WatchConfig::of::<ConfigMap>());
        let last = |tenure, config: &WatchConfig, uid: &str| applied.last(&key(0), tenure, config, &uid.into());
        applied.record(&key(0), 3, &pods, states(&["a", "b"]));
        applied.record_one(&key(0), 3, &configs, "c".into(), state(1));
        assert_eq!((last(3, &pods, "a"), last(3, &configs, "c")), (Some(state(1)), Some(state(1))));
        assert_eq!((last(7, &pods, "a"), last(2, &pods, "a")), (None, None));
        applied.record_one(&key(0), 7, &pods, "a".into(), state(2));
        assert_eq!((last(7, &pods, "a"), last(7, &pods, "b"), last(7, &configs, "c")), (Some(state(2)), None, None));
        assert_eq!((last(3, &pods, "b"), applied.len()), (None, 1));
        applied.record(&key(0), 3, &pods, states(&["a"]));
        applied.record_one(&key(0), 3, &configs, "c".into(), state(1));
        assert_eq!((last(7, &pods, "a"), last(3, &configs, "c"), applied.len()), (Some(state(2)), None, 1));
    }

    #[test]
    fn memory_is_bounded() {
        let (applied, pods) = (Applied::default(), WatchConfig::of::<Pod>());
        for n in 0..=APPLIED_MAX {
            applied.record(&key(n), 0, &pods, states(&["a"]));
        }
        assert_eq!(applied.len(), 1);
        assert!(applied.last(&key(APPLIED_MAX), 0, &pods, &"a".into()).is_some());
        for n in 1..=APPLIED_MAX {
            applied.record_one(&key(0), 0, &pods, n.to_string().as_str().into(), state(1));
        }
        assert_eq!(applied.len(), 1);
    }
}
