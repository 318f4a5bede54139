//! What `converge` has applied, so that nothing is sent for what is still in that form.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    key::ObjectKey,
    object::{Kind, Uid},
};

/// Objects that are remembered. When there are more, all are forgotten: each costs one request to be known again.
const APPLIED_MAX: usize = 100_000;

/// Of each primary and kind, what it desired last, by uid: a hash of it. What is desired no longer is not in it, nor is anything
/// of a primary that is gone.
#[derive(Default)]
pub(crate) struct Applied(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_primary: HashMap<ObjectKey, HashMap<Kind, Hashes>>,
    /// Of all of them.
    n_objects: usize,
}

type Hashes = HashMap<Uid, u64>;

impl Applied {
    /// Whether an object was last applied in this form.
    pub(super) fn is_known(&self, primary: &ObjectKey, kind: &Kind, uid: &Uid, hash: u64) -> bool {
        let known = self.0.lock();
        known.by_primary.get(primary).and_then(|kinds| kinds.get(kind)?.get(uid)) == Some(&hash)
    }

    /// Remembers all that a primary desires of a kind, in the place of what it desired before.
    pub(super) fn learn(&self, primary: &ObjectKey, kind: &Kind, desired: Hashes) {
        let mut known = self.0.lock();
        let Known { by_primary, n_objects } = &mut *known;
        if let Some(before) = by_primary.get_mut(primary).and_then(|kinds| kinds.remove(kind)) {
            *n_objects -= before.len();
        }
        if desired.is_empty() {
            return;
        }
        if *n_objects + desired.len() > APPLIED_MAX {
            by_primary.clear();
            *n_objects = 0;
        }
        *n_objects += desired.len();
        by_primary.entry(primary.clone()).or_default().insert(kind.clone(), desired);
    }

    /// Forgets a primary that is gone.
    pub(crate) fn forget(&self, primary: &ObjectKey) {
        let mut known = self.0.lock();
        let kinds = known.by_primary.remove(primary).unwrap_or_default();
        known.n_objects -= kinds.values().map(HashMap::len).sum::<usize>();
    }

    /// How many objects are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        let known = self.0.lock();
        let counted: usize = known.by_primary.values().flat_map(HashMap::values).map(HashMap::len).sum();
        assert_eq!(counted, known.n_objects);
        counted
    }
}

/// Equal values have equal texts: maps are sorted.
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

    fn hashes(uids: &[&str]) -> Hashes {
        uids.iter().map(|uid| (Uid::from(*uid), 1)).collect()
    }

    #[test]
    fn only_what_is_still_desired_is_remembered() {
        let (applied, pods, configs) = (Applied::default(), Kind::of::<Pod>(), Kind::of::<ConfigMap>());
        let knows = |kind: &Kind, uid: &str, hash| applied.is_known(&key(0), kind, &uid.into(), hash);
        applied.learn(&key(0), &pods, hashes(&["a", "b"]));
        applied.learn(&key(0), &configs, hashes(&["c"]));
        assert!(knows(&pods, "a", 1) && knows(&pods, "b", 1) && knows(&configs, "c", 1));
        assert!(!knows(&pods, "a", 2), "another form");
        // `a` was deleted by somebody else and has a successor.
        applied.learn(&key(0), &pods, hashes(&["a2", "b"]));
        assert!(!knows(&pods, "a", 1) && knows(&pods, "a2", 1) && knows(&configs, "c", 1));
        assert_eq!(applied.len(), 3);
        applied.learn(&key(0), &pods, Hashes::new());
        assert_eq!(applied.len(), 1);
        applied.forget(&key(0));
        assert!(!knows(&configs, "c", 1));
        assert_eq!(applied.len(), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let (applied, pods) = (Applied::default(), Kind::of::<Pod>());
        for n in 0..=APPLIED_MAX {
            applied.learn(&key(n), &pods, hashes(&["a"]));
        }
        assert_eq!(applied.len(), 1);
        assert!(applied.is_known(&key(APPLIED_MAX), &pods, &"a".into(), 1));
    }
}
