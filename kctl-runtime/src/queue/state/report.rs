//! The numbers and keys of a queue for metrics, health and the debug page.

use std::{hash::Hash, time::Duration};

use tokio::time::Instant;

use super::{QueueState, entry::Entry};
use crate::queue::stats::{PRIORITIES_REPORTED_MAX, QueueKeys, QueueStats};

impl<K: Eq + Hash + Clone> QueueState<K> {
    /// Collects the failing and the running keys in one pass, and returns at most `max` of each.
    pub(in crate::queue) fn keys(&self, max: usize, now: Instant) -> QueueKeys<K> {
        let (mut failing, mut running) = (Vec::new(), Vec::new());
        for (key, entry) in self.keys.iter() {
            if entry.consecutive_failures() > 0 {
                failing.push((entry.failing_since, key, entry));
            }
            if let Some(work) = entry.processing {
                running.push((work.since, key));
            }
        }
        let n_failing = failing.len();
        failing.sort_unstable_by_key(|(since, ..)| *since);
        running.sort_unstable_by_key(|(since, _)| *since);
        let wait = |entry: &Entry| entry.delayed.map(|delayed| delayed.due.saturating_duration_since(now));
        let failing = failing
            .into_iter()
            .take(max)
            .map(|(_, key, entry)| (key.clone(), entry.consecutive_failures(), wait(entry)));
        let running = running.into_iter().take(max);
        QueueKeys {
            failing: failing.collect(),
            n_failing,
            running: running.map(|(since, key)| (key.clone(), now.saturating_duration_since(since))).collect(),
        }
    }

    /// Returns the number of ready keys.
    pub(in crate::queue) fn len(&mut self, now: Instant) -> usize {
        self.promote_due(now);
        self.ready.len()
    }

    /// Returns the number of keys that workers have.
    pub(in crate::queue) fn n_processing(&self) -> usize {
        self.working.len()
    }

    /// Returns the number of waiting keys that are due by `until`, or of all with `None`.
    pub(in crate::queue) fn delayed_until(&mut self, until: Option<Instant>, now: Instant) -> usize {
        self.promote_due(now);
        match until {
            Some(until) => self.delayed.keys().take_while(|(due, _)| *due <= until).count(),
            None => self.delayed.len(),
        }
    }

    /// Returns the key whose wait ends first.
    pub(in crate::queue) fn next_due(&self) -> Option<(K, Instant)> {
        let ((due, _), id) = self.delayed.first_key_value()?;
        Some((self.keys.key(*id)?.clone(), *due))
    }

    /// Returns the keys that have been processed since `before` or longer, the longest first.
    pub(in crate::queue) fn processing_since(&self, before: Instant) -> Vec<(K, Instant)> {
        let works = self.working.iter().filter_map(|id| {
            let since = self.keys.value(*id).processing?.since;
            self.keys.key(*id).filter(|_| since <= before).map(|key| (key.clone(), since))
        });
        let mut works: Vec<_> = works.collect();
        works.sort_by_key(|(_, since)| *since);
        works
    }

    /// Returns `true` if a key that `matches` selects is processed.
    pub(in crate::queue) fn processes(&self, matches: impl Fn(&K) -> bool) -> bool {
        self.working.iter().filter_map(|id| self.keys.key(*id)).any(matches)
    }

    /// Returns the numbers for metrics, at a cost of the keys in workers and not of all keys.
    pub(in crate::queue) fn stats(&mut self, now: Instant) -> QueueStats {
        self.promote_due(now);
        debug_assert!(self.ready.len() + self.working.len() <= self.keys.len(), "a key is ready, or with one worker");
        let running = self.working.iter().filter_map(|id| self.keys.value(*id).processing);
        let running = running.map(|work| now.saturating_duration_since(work.since));
        let depth_by_priority: Vec<_> = self.ready.depths().take(PRIORITIES_REPORTED_MAX).collect();
        debug_assert!(
            depth_by_priority.is_sorted_by(|(higher, _), (lower, _)| higher > lower),
            "a priority has one lane, and the highest comes first"
        );
        QueueStats {
            depth: self.ready.len(),
            depth_by_priority,
            depth_beyond: self.ready.depths().skip(PRIORITIES_REPORTED_MAX).map(|(_, depth)| depth).sum(),
            delayed: self.delayed.len(),
            processing: self.working.len(),
            keys: self.keys.len(),
            adds: self.adds,
            retries: self.retries,
            longest_running: running.clone().max().unwrap_or_default(),
            unfinished_work: running.fold(Duration::ZERO, Duration::saturating_add),
            oldest_waiting: self.ready.oldest().map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
        }
    }
}
