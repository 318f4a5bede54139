//! The line of ready keys: highest priority first, then first come first served, and nobody starves.

use std::{cmp::Reverse, collections::BTreeMap};

use tokio::time::Instant;

/// How many takes in a row may pass over the key that has waited longest; the next one is that key, whatever its
/// priority. So a key with `n` older ones before it is taken within `(n + 1) · 10` takes, and fresh work of a high
/// priority loses a tenth of the workers at most.
pub const PASSED_OVER_MAX: u32 = 9;

/// Where a key stands in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    priority: Reverse<i32>,
    /// In the order in which keys came to this priority.
    order: u64,
    age: Age,
}

/// Since when a key waits. A key that moves up keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    /// Unique, and in the order of adds.
    pub(super) sequence: u64,
    pub(super) since: Instant,
}

impl Place {
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

pub(super) struct Ready<K> {
    line: BTreeMap<Place, K>,
    /// Invariant: the places of `line`, by age.
    ages: BTreeMap<Age, Place>,
    /// Invariant: how many of `line` have each priority; none is zero.
    depths: BTreeMap<Reverse<i32>, usize>,
    /// Takes in a row that were not the oldest. Invariant: at most `PASSED_OVER_MAX`.
    passed_over: u32,
}

impl<K> Default for Ready<K> {
    fn default() -> Self {
        Self { line: BTreeMap::new(), ages: BTreeMap::new(), depths: BTreeMap::new(), passed_over: 0 }
    }
}

impl<K> Ready<K> {
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    pub(super) fn insert(&mut self, place: Place, key: K) {
        self.line.insert(place, key);
        self.ages.insert(place.age, place);
        *self.depths.entry(place.priority).or_default() += 1;
        debug_assert_eq!(self.line.len(), self.ages.len(), "each ready key has one age");
    }

    pub(super) fn remove(&mut self, place: &Place) -> Option<K> {
        let key = self.line.remove(place)?;
        self.ages.remove(&place.age);
        if let Some(depth) = self.depths.get_mut(&place.priority) {
            *depth -= 1;
            if *depth == 0 {
                self.depths.remove(&place.priority);
            }
        }
        Some(key)
    }

    /// Takes the first of the line, or the oldest when it is its turn.
    pub(super) fn take(&mut self) -> Option<(Place, K)> {
        let (first, _) = self.line.first_key_value()?;
        let (_, oldest) = self.ages.first_key_value()?;
        let place = if self.passed_over >= PASSED_OVER_MAX { *oldest } else { *first };
        self.passed_over = if place == *oldest { 0 } else { self.passed_over + 1 };
        self.remove(&place).map(|key| (place, key))
    }

    /// Since when the oldest key waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.ages.first_key_value().map(|(age, _)| age.since)
    }

    /// Priorities with their numbers of keys, the highest first.
    pub(super) fn depths(&self) -> impl Iterator<Item = (i32, usize)> {
        self.depths.iter().map(|(priority, depth)| (priority.0, *depth))
    }
}
