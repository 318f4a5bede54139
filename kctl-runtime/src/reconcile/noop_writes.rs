//! Suppresses status patches that change nothing. If a patch left the `resourceVersion` unchanged, the same patch of
//! the same state is not sent again. An example is an API server that restores a default.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::key::ObjectKey;

/// Maximum number of remembered objects. Beyond it all are forgotten: each then costs one request.
const NOOP_WRITES_MAX: usize = 10_000;

/// The last patch of each object that changed nothing.
#[derive(Default)]
pub(crate) struct NoopWrites(Mutex<HashMap<ObjectKey, u64>>);

impl NoopWrites {
    /// Returns `true` if this change of the object had no effect the last time.
    pub(crate) fn contains(&self, key: &ObjectKey, before: &Value, patch: &Value) -> bool {
        self.0.lock().get(key).is_some_and(|recorded| *recorded == digest(before, patch))
    }

    pub(crate) fn record(&self, key: &ObjectKey, before: &Value, patch: &Value) {
        let mut digests = self.0.lock();
        if digests.len() >= NOOP_WRITES_MAX && !digests.contains_key(key) {
            digests.clear();
        }
        digests.insert(key.clone(), digest(before, patch));
    }
}

fn digest(before: &Value, patch: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before.to_string(), patch.to_string()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(n: usize) -> ObjectKey {
        ObjectKey::new(None, &n.to_string())
    }

    #[test]
    fn only_the_same_noop_is_suppressed() {
        let (noop_writes, before, patch) = (NoopWrites::default(), json!({ "n": 0 }), json!({}));
        noop_writes.record(&key(0), &before, &patch);
        assert!(noop_writes.contains(&key(0), &before, &patch));
        assert!(!noop_writes.contains(&key(1), &before, &patch), "another object");
        assert!(!noop_writes.contains(&key(0), &json!({ "n": 1 }), &patch), "another state");
        assert!(!noop_writes.contains(&key(0), &before, &json!({ "m": 1 })), "another wish");
        for n in 0..2 * NOOP_WRITES_MAX {
            noop_writes.record(&key(n), &before, &patch);
            assert!(noop_writes.0.lock().len() <= NOOP_WRITES_MAX);
        }
        assert!(noop_writes.contains(&key(2 * NOOP_WRITES_MAX - 1), &before, &patch));
    }
}
