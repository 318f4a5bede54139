//! Failures of keys: counted, forgotten, given up, or explained by own writes.

use std::hash::Hash;

use super::{
    QueueState,
    effect::{OWN_WRITES_MAX, VersionEffect},
};

impl<K: Eq + Hash + Clone> QueueState<K> {
    /// Resets failures and conflicts after a success.
    pub(in crate::queue) fn forget(&mut self, key: &K) {
        if let Some(id) = self.keys.find(key) {
            let entry = self.keys.value_mut(id);
            entry.reset_failures();
            entry.given_up = false;
            self.remove_if_empty(id);
        }
    }

    /// Resets the failures and conflicts of a key, which still counts as failing.
    pub(in crate::queue) fn give_up(&mut self, key: K) {
        let id = self.keys.ensure(key);
        let entry = self.keys.value_mut(id);
        entry.reset_failures();
        entry.given_up = true;
    }

    /// Records the versions that the ending run wrote. Their events, earlier or later, do not make the key run again.
    pub(in crate::queue) fn ignore_own_writes(&mut self, key: &K, mut written: Vec<VersionEffect>) {
        let Some(id) = self.keys.find(key) else { return };
        let entry = self.keys.value_mut(id);
        written.truncate(OWN_WRITES_MAX);
        if let Some(dirty) = &mut entry.dirty {
            dirty.events.retain(|event| !event.is_explained_by(&written));
        }
        entry.dirty = entry.dirty.take().filter(|dirty| dirty.effect().is_some());
        entry.own_writes = written;
        if entry.is_changed() {
            entry.reset_failures();
        }
    }

    pub(in crate::queue) fn conflicts(&self, key: &K) -> u32 {
        self.keys.find(key).map_or(0, |id| self.keys.value(id).conflicts)
    }

    pub(in crate::queue) fn failures(&self, key: &K) -> u32 {
        self.keys.find(key).map_or(0, |id| self.keys.value(id).failures)
    }

    /// Returns the number of failing keys, including those that were given up.
    pub(in crate::queue) fn n_failing(&self) -> usize {
        self.keys.iter().filter(|(_, entry)| entry.is_failing()).count()
    }

    /// Returns the keys that fail and are retried, with their failures or conflicts in a row, longest failing first.
    pub(in crate::queue) fn failing(&self) -> Vec<(K, u32)> {
        let mut failing: Vec<_> = self.keys.iter().filter(|(_, entry)| entry.consecutive_failures() > 0).collect();
        failing.sort_by_key(|(_, entry)| entry.failing_since);
        failing.into_iter().map(|(key, entry)| (key.clone(), entry.consecutive_failures())).collect()
    }
}
