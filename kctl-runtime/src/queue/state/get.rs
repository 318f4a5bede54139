//! Gives ready keys to workers, and ends their processing.

use std::{hash::Hash, mem, time::Duration};

use tokio::time::Instant;

use super::{Next, Phase, QueueState, Wake, effect::BackoffEffect, entry::Work};
use crate::queue::{Item, ready::ReadyPosition};

impl<K: Eq + Hash + Clone> QueueState<K> {
    /// Takes the next ready key for a worker, or returns the time at which the next key is due.
    pub(in crate::queue) fn next(&mut self, now: Instant) -> Next<K> {
        self.promote_due(now);
        if let Some((position, id)) = self.ready.take()
            && let Some(key) = self.keys.key(id).cloned()
        {
            let entry = self.keys.value_mut(id);
            debug_assert!(entry.processing.is_none(), "at most one worker processes a key");
            debug_assert!(entry.delayed.is_none() && entry.dirty.is_none(), "a ready key neither waits nor runs");
            entry.queued = None;
            entry.own_writes = Vec::new();
            entry.processing = Some(Work { idx: self.working.len(), since: now, priority: position.priority() });
            let tags = mem::take(&mut entry.tags);
            self.working.push(id);
            let item = Item { key, priority: position.priority(), tags };
            let waited = now.saturating_duration_since(position.age().since);
            return Next::Taken { item, waited, more: self.ready.len() > 0 };
        }
        match self.phase {
            Phase::Open => Next::Wait(self.delayed.first_key_value().map(|((due, _), _)| *due)),
            Phase::ShutDown | Phase::Draining => {
                debug_assert!(self.delayed.is_empty(), "no key is delayed after a shutdown");
                Next::End
            }
        }
    }

    /// Makes the keys ready whose wait has ended.
    pub(super) fn promote_due(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let (due, _) = *first.key();
            let id = first.remove();
            let delayed = self.keys.value_mut(id).delayed.take();
            debug_assert!(delayed.is_some(), "an id in `delayed` has its wait in its entry");
            let (priority, tags) = delayed.map_or((0, 0), |delayed| (delayed.priority, delayed.reason.tag()));
            self.keys.value_mut(id).tags |= tags;
            self.add_known(id, priority, BackoffEffect::End, None, due);
        }
    }

    /// Ends the processing of a key. Returns its duration and the task to wake, or `None` if the key was not being
    /// processed.
    pub(in crate::queue) fn finish_processing(&mut self, key: &K, now: Instant) -> Option<(Duration, Wake)> {
        let order = self.next_number();
        let id = self.keys.find(key)?;
        let work = self.keys.value_mut(id).processing.take()?;
        debug_assert_eq!(self.working.get(work.idx), Some(&id), "a processed key knows its index in `working`");
        self.remove_working(work.idx);
        let entry = self.keys.value_mut(id);
        let wake = if let Some(dirty) = entry.dirty.take() {
            if dirty.effect() == Some(BackoffEffect::Reset) {
                entry.reset_failures();
            }
            debug_assert!(entry.delayed.is_none(), "a key that runs again at once has no delay");
            let position = ReadyPosition::new(dirty.priority, order, dirty.age);
            entry.queued = Some(position);
            self.ready.insert(position, id);
            Wake::Worker
        } else {
            self.remove_if_empty(id);
            Wake::None
        };
        Some((now.saturating_duration_since(work.since), wake))
    }

    /// Removes a key from `working`; the last one moves to its index.
    fn remove_working(&mut self, idx: usize) {
        self.working.swap_remove(idx);
        if let Some(moved) = self.working.get(idx)
            && let Some(work) = &mut self.keys.value_mut(*moved).processing
        {
            work.idx = idx;
        }
    }
}
