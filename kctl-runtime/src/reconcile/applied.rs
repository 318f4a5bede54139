//! The state in which this process last applied each object, so that nothing is sent for an object that still has it.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{key::ObjectKey, object::Uid, source::WatchConfig};

/// Maximum number of remembered objects. Beyond it all are forgotten: each then costs one request.
const APPLIED_MAX: usize = 100_000;

/// The last state of each object, by the primary that desired it, its kind and cluster, and its uid. Objects that
/// `converge` no longer desires are removed, and so are those of a deleted primary.
#[derive(Default)]
pub(crate) struct Applied(Mutex<AppliedObjects>);

#[derive(Default)]
struct AppliedObjects {
    by_primary: HashMap<ObjectKey, HashMap<WatchConfig, AppliedStates>>,
    /// Number of objects in all maps of `by_primary`; at most [`APPLIED_MAX`], or as many as one primary desires of a
    /// kind if those are more.
    n_objects: usize,
}

pub(super) type AppliedStates = HashMap<Uid, AppliedState>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AppliedState {
    /// A hash of the desired object.
    pub(super) desired: u64,
    /// A hash of the object as the API server stored it, if it is known. It detects an apply that would change nothing
    /// although the stored state differs from the applied one.
    pub(super) left: Option<u64>,
}

impl Applied {
    /// Returns the state in which an object was applied last.
    pub(super) fn last(&self, primary: &ObjectKey, config: &WatchConfig, uid: &Uid) -> Option<AppliedState> {
        let objects = self.0.lock();
        objects.by_primary.get(primary).and_then(|kinds| kinds.get(config)?.get(uid)).copied()
    }

    /// Remembers all that a primary desires of a kind, and forgets what it desired before.
    pub(super) fn record(&self, primary: &ObjectKey, config: &WatchConfig, desired: AppliedStates) {
        let mut objects = self.0.lock();
        let AppliedObjects { by_primary, n_objects } = &mut *objects;
        if let Some(before) = by_primary.get_mut(primary).and_then(|kinds| kinds.remove(config)) {
            *n_objects -= before.len();
        }
        if desired.is_empty() {
            return;
        }
        objects.make_room(desired.len());
        objects.n_objects += desired.len();
        objects.by_primary.entry(primary.clone()).or_default().insert(config.clone(), desired);
    }

    /// Records one object in addition to the others of its kind.
    pub(super) fn record_one(&self, primary: &ObjectKey, config: &WatchConfig, uid: Uid, state: AppliedState) {
        let mut objects = self.0.lock();
        let kinds = objects.by_primary.get_mut(primary);
        if let Some(last) = kinds.and_then(|kinds| kinds.get_mut(config)?.get_mut(&uid)) {
            *last = state;
            return;
        }
        objects.make_room(1);
        objects.n_objects += 1;
        objects.by_primary.entry(primary.clone()).or_default().entry(config.clone()).or_default().insert(uid, state);
    }

    pub(crate) fn forget(&self, primary: &ObjectKey) {
        let mut objects = self.0.lock();
        let kinds = objects.by_primary.remove(primary).unwrap_or_default();
        objects.n_objects -= kinds.values().map(HashMap::len).sum::<usize>();
    }

    /// Forgets the objects of primaries for which `keep` returns `false`, such as those of a lost slot.
    pub(crate) fn retain(&self, keep: impl Fn(&ObjectKey) -> bool) {
        let mut objects = self.0.lock();
        let AppliedObjects { by_primary, n_objects } = &mut *objects;
        by_primary.retain(|primary, kinds| {
            let is_kept = keep(primary);
            if !is_kept {
                *n_objects -= kinds.values().map(HashMap::len).sum::<usize>();
            }
            is_kept
        });
    }

    /// Records an object that a primary desires.
    #[cfg(test)]
    pub(crate) fn add(&self, primary: &ObjectKey, config: &WatchConfig) {
        self.record_one(primary, config, Uid::from("uid"), AppliedState { desired: 1, left: None });
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
        let counted: usize = objects.by_primary.values().flat_map(HashMap::values).map(HashMap::len).sum();
        assert_eq!(counted, objects.n_objects);
        counted
    }
}

impl AppliedObjects {
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
        let knows = |config: &WatchConfig, uid: &str, n| applied.last(&key(0), config, &uid.into()) == Some(state(n));
        applied.record(&key(0), &pods, states(&["a", "b"]));
        applied.record(&key(0), &configs, states(&["c"]));
        assert!(knows(&pods, "a", 1) && knows(&pods, "b", 1) && knows(&configs, "c", 1));
        assert!(!knows(&pods, "a", 2), "another state");
        // Another client deleted `a`, and created a new object of the same name.
        applied.record(&key(0), &pods, states(&["a2", "b"]));
        assert!(!knows(&pods, "a", 1) && knows(&pods, "a2", 1) && knows(&configs, "c", 1));
        assert_eq!(applied.len(), 3);
        applied.record(&key(0), &pods, AppliedStates::new());
        assert_eq!(applied.len(), 1);
        applied.forget(&key(0));
        assert!(!knows(&configs, "c", 1));
        assert_eq!(applied.len(), 0);
    }

    #[test]
    fn one_object_is_recorded_beside_others() {
        let (applied, pods) = (Applied::default(), WatchConfig::of::<Pod>());
        let (here, edge) = (pods.clone(), pods.on("edge"));
        let last = |config: &WatchConfig, uid: &str| applied.last(&key(0), config, &uid.into());
        applied.record_one(&key(0), &here, "a".into(), state(1));
        applied.record_one(&key(0), &here, "b".into(), state(1));
        applied.record_one(&key(0), &here, "a".into(), state(2));
        applied.record_one(&key(0), &edge, "c".into(), state(3));
        assert_eq!((last(&here, "a"), last(&here, "b")), (Some(state(2)), Some(state(1))));
        assert_eq!(applied.len(), 3);
        applied.record(&key(0), &here, states(&["d"]));
        assert_eq!((last(&here, "a"), last(&edge, "c")), (None, Some(state(3))), "another cluster is another kind");
        assert_eq!(applied.len(), 2);
    }

    #[test]
    fn objects_of_other_primaries_are_forgotten() {
        let (applied, pods, configs) = (Applied::default(), WatchConfig::of::<Pod>(), WatchConfig::of::<ConfigMap>());
        for n in 0..2 {
            applied.record(&key(n), &pods, states(&["a", "b"]));
            applied.record(&key(n), &configs, states(&["c"]));
        }
        applied.retain(|primary| *primary == key(1));
        assert_eq!(applied.len(), 3);
        assert_eq!(applied.last(&key(0), &pods, &"a".into()), None);
        assert_eq!(applied.last(&key(1), &pods, &"a".into()), Some(state(1)));
    }

    #[test]
    fn memory_is_bounded() {
        let (applied, pods) = (Applied::default(), WatchConfig::of::<Pod>());
        for n in 0..=APPLIED_MAX {
            applied.record(&key(n), &pods, states(&["a"]));
        }
        assert_eq!(applied.len(), 1);
        assert!(applied.last(&key(APPLIED_MAX), &pods, &"a".into()).is_some());
        for n in 1..=APPLIED_MAX {
            applied.record_one(&key(0), &pods, n.to_string().as_str().into(), state(1));
        }
        assert_eq!(applied.len(), 1);
    }
}
