//! Suppresses status patches that change nothing. If a patch left the `resourceVersion` unchanged, the same patch of
//! the same state is not sent again for ten minutes. An example is an API server that restores a default.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::key::ObjectKey;

/// Maximum number of remembered objects. Beyond it all are forgotten: each then costs one request.
const NOOP_WRITES_MAX: usize = 10_000;

/// Time after which a write that changed nothing is sent again. The API server may have pruned a field that the CRD did not
/// have yet, and nothing in the object shows that it has it now.
pub(super) const NOOP_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// For each object, the last change of its status that had no effect.
#[derive(Default)]
pub(crate) struct NoopWrites(Mutex<HashMap<ObjectKey, NoopWrite>>);

struct NoopWrite {
    digest: u64,
    since: Instant,
}

impl NoopWrites {
    /// Returns `true` if this change of the status had no effect within the last [`NOOP_AGAIN_AFTER`].
    pub(crate) fn contains(&self, key: &ObjectKey, before: &Value, desired: &Value) -> bool {
        let is_it =
            |noop: &NoopWrite| noop.since.elapsed() < NOOP_AGAIN_AFTER && noop.digest == digest(before, desired);
        self.0.lock().get(key).is_some_and(is_it)
    }

    /// Records that the change of the status from `before` to `desired` had no effect.
    pub(crate) fn record(&self, key: &ObjectKey, before: &Value, desired: &Value) {
        let mut noops = self.0.lock();
        if noops.len() >= NOOP_WRITES_MAX && !noops.contains_key(key) {
            noops.clear();
        }
        noops.insert(key.clone(), NoopWrite { digest: digest(before, desired), since: Instant::now() });
    }
}

fn digest(before: &Value, desired: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before.to_string(), desired.to_string()).hash(&mut hasher);
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
        let (noop_writes, before, desired) = (NoopWrites::default(), json!({ "n": 0 }), json!({}));
        noop_writes.record(&key(0), &before, &desired);
        assert!(noop_writes.contains(&key(0), &before, &desired));
        assert!(!noop_writes.contains(&key(1), &before, &desired), "another object");
        assert!(!noop_writes.contains(&key(0), &json!({ "n": 1 }), &desired), "another state");
        assert!(!noop_writes.contains(&key(0), &before, &json!({ "m": 1 })), "another desired status");
        for n in 0..2 * NOOP_WRITES_MAX {
            noop_writes.record(&key(n), &before, &desired);
            assert!(noop_writes.0.lock().len() <= NOOP_WRITES_MAX);
        }
        assert!(noop_writes.contains(&key(2 * NOOP_WRITES_MAX - 1), &before, &desired));
    }

    #[tokio::test(start_paused = true)]
    async fn noop_is_sent_again_after_ten_minutes() {
        let (noop_writes, before, desired) = (NoopWrites::default(), json!({ "n": 0 }), json!({}));
        noop_writes.record(&key(0), &before, &desired);
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(noop_writes.contains(&key(0), &before, &desired));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!noop_writes.contains(&key(0), &before, &desired));
    }
}
