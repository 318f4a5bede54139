//! The runs of a controller's functions that its `timeout` limits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::key::ObjectKey;

/// The runs that the `timeout` of a controller limits, with the time of their start. Clones share the state.
///
/// The queue knows when a key was taken. The function starts later, after the lists that uncertain writes need. These
/// take as long as the API server does.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimedRuns(Arc<Mutex<BTreeMap<ObjectKey, Instant>>>);

/// A run of a function, which ends when this is dropped.
#[must_use = "the run ends when this is dropped"]
pub(crate) struct TimedRun<'a> {
    all: &'a TimedRuns,
    key: &'a ObjectKey,
}

impl TimedRuns {
    /// Notes that the function starts for this key.
    pub(crate) fn start<'a>(&'a self, key: &'a ObjectKey) -> TimedRun<'a> {
        let other = self.0.lock().insert(key.clone(), Instant::now());
        debug_assert!(other.is_none(), "at most one worker has a key");
        TimedRun { all: self, key }
    }

    /// Returns the key whose function has been running for longest, and for how long.
    pub(crate) fn longest(&self) -> Option<(ObjectKey, Duration)> {
        let first = self.0.lock().iter().min_by_key(|(_, start)| **start).map(|(key, start)| (key.clone(), *start));
        first.map(|(key, start)| (key, start.elapsed()))
    }
}

impl Drop for TimedRun<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(self.key);
    }
}
