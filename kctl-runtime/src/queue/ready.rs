//! The ready keys: highest priority first, then first come, first served, and no key starves.

use std::{cmp::Reverse, collections::BTreeMap};

use tokio::time::Instant;

use super::ordered_map::OrderedMap;

/// Maximum number of takes in a row that pass over the key that has waited longest. The next take returns that key,
/// whatever its priority.
///
/// So a key with `n` older ones before it is taken within `(n + 1) · 10` takes. Fresh keys of a high priority lose at
/// most a tenth of the workers.
pub const PASSED_OVER_MAX: u32 = 9;

/// The position of a key among the ready ones: its priority, its order within that priority, and its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadyPosition {
    priority: Reverse<i32>,
    /// The order in which keys came to this priority.
    order: u64,
    age: Age,
}

/// The moment at which a key began to wait. A key that moves to a higher priority keeps its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    /// Unique, and in the order of adds.
    pub(super) sequence: u64,
    pub(super) since: Instant,
}

impl ReadyPosition {
    pub(super) fn new(priority: i32, order: u64, age: Age) -> Self {
        Self { priority: Reverse(priority), order, age }
    }

    pub(super) fn priority(&self) -> i32 {
        self.priority.0
    }

    pub(super) fn age(&self) -> Age {
        self.age
    }
}

/// The ready keys, sorted by [`ReadyPosition`] and by [`Age`] at the same time.
pub(super) struct Ready<K> {
    /// The keys of each priority by `order`. Invariant: no lane is empty.
    lanes: BTreeMap<Reverse<i32>, OrderedMap<(ReadyPosition, K)>>,
    /// Invariant: the positions in `lanes`, by the sequence of their age.
    ages: OrderedMap<ReadyPosition>,
    /// Number of takes in a row that were not the oldest key. Invariant: at most `PASSED_OVER_MAX`.
    passed_over: u32,
}

impl<K> Default for Ready<K> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), ages: OrderedMap::default(), passed_over: 0 }
    }
}

impl<K> Ready<K> {
    pub(super) fn len(&self) -> usize {
        self.ages.len()
    }

    pub(super) fn insert(&mut self, position: ReadyPosition, key: K) {
        self.lanes.entry(position.priority).or_default().insert(position.order, (position, key));
        self.ages.insert(position.age.sequence, position);
    }

    pub(super) fn remove(&mut self, position: &ReadyPosition) -> Option<K> {
        let lane = self.lanes.get_mut(&position.priority)?;
        let (_, key) = lane.remove(position.order)?;
        if lane.len() == 0 {
            self.lanes.remove(&position.priority);
        }
        self.ages.remove(position.age.sequence);
        debug_assert!(self.lanes.values().all(|lane| lane.len() > 0), "`depths` counts no empty lane");
        debug_assert_eq!(
            self.lanes.values().map(OrderedMap::len).sum::<usize>(),
            self.ages.len(),
            "both hold the same keys"
        );
        Some(key)
    }

    /// Takes the first key by priority, or the oldest one if it is its turn.
    pub(super) fn take(&mut self) -> Option<(ReadyPosition, K)> {
        let (first, _) = self.lanes.first_key_value()?.1.first()?;
        let oldest = self.ages.first()?;
        let position = if self.passed_over >= PASSED_OVER_MAX { *oldest } else { *first };
        self.passed_over = if position == *oldest { 0 } else { self.passed_over + 1 };
        debug_assert!(self.passed_over <= PASSED_OVER_MAX, "the oldest key is taken at the bound");
        self.remove(&position).map(|key| (position, key))
    }

    /// Returns the moment since which the oldest key has waited.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.ages.first().map(|position| position.age.since)
    }

    /// Iterates over the priorities with their numbers of keys, the highest first.
    pub(super) fn depths(&self) -> impl Iterator<Item = (i32, usize)> {
        self.lanes.iter().map(|(priority, lane)| (priority.0, lane.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// `Some` adds a key with that priority, `None` takes one.
        #[test]
        fn every_key_is_taken_within_the_bound(steps in prop::collection::vec(prop::option::of(-2..3), 0..400)) {
            let now = Instant::now();
            let mut ready = Ready::default();
            let (mut n_takes, mut next) = (0_u32, 0_u64);
            // The number of takes after which each key must have been taken, by its age.
            let mut deadlines = BTreeMap::new();
            let drained = std::iter::repeat_n(None, steps.len());
            for step in steps.iter().copied().chain(drained) {
                if let Some(priority) = step {
                    let n_older = u32::try_from(deadlines.len()).unwrap();
                    deadlines.insert(next, n_takes + (n_older + 1) * (PASSED_OVER_MAX + 1));
                    ready.insert(ReadyPosition::new(priority, next, Age { sequence: next, since: now }), next);
                    next += 1;
                } else if let Some((position, key)) = ready.take() {
                    n_takes += 1;
                    prop_assert_eq!(position.age().sequence, key);
                    let deadline = deadlines.remove(&key);
                    prop_assert!(deadline.is_some_and(|deadline| n_takes <= deadline), "{} is late or came twice", key);
                }
                prop_assert_eq!(ready.len(), deadlines.len());
                prop_assert_eq!(ready.depths().map(|(_, depth)| depth).sum::<usize>(), ready.len());
            }
            prop_assert_eq!(ready.len(), 0);
        }

        /// Short lines never reach the bound: the order is by priority, then by arrival.
        #[test]
        fn below_the_bound_the_highest_priority_comes_first(priorities in prop::collection::vec(-2..3, 0..10)) {
            let now = Instant::now();
            let mut ready = Ready::default();
            for (order, priority) in (0_u64..).zip(&priorities) {
                ready.insert(ReadyPosition::new(*priority, order, Age { sequence: order, since: now }), order);
            }
            let taken: Vec<_> = std::iter::from_fn(|| ready.take()).map(|(position, order)| (-position.priority(), order)).collect();
            prop_assert!(taken.is_sorted(), "{:?}", taken);
        }
    }
}
