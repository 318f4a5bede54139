//! A sorted map from numbers to values, for numbers that mostly arrive in ascending order and are mostly removed at the
//! front. Each such step takes constant time, however many values there are, and is cheaper than in a tree.

use std::collections::{BTreeMap, VecDeque};

/// Gaps are removed once there are more than this, and more than half of the row.
const GAPS_MAX: usize = 32;
/// Number of entries for which an empty row keeps its memory.
const ROW_KEPT: usize = 64;

/// The sorted values: a row for those that arrived in order, a tree for the others.
pub(super) struct OrderedMap<T> {
    /// Values in the order of their numbers; `None` is a gap that a removal left. Invariant: the first entry is not a
    /// gap.
    row: VecDeque<(u64, Option<T>)>,
    /// Values that arrived after a higher number.
    late: BTreeMap<u64, T>,
    /// Number of gaps in `row`. Invariant: lower than its length, unless both are 0.
    n_gaps: usize,
}

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self { row: VecDeque::new(), late: BTreeMap::new(), n_gaps: 0 }
    }
}

impl<T> OrderedMap<T> {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.row.len() - self.n_gaps + self.late.len()
    }

    /// Inserts a value under a number that has no value yet.
    pub(super) fn insert(&mut self, number: u64, value: T) {
        if self.row.back().is_none_or(|(last, _)| *last < number) {
            self.row.push_back((number, Some(value)));
        } else if let Ok(gap) = self.row.binary_search_by_key(&number, |(number, _)| *number) {
            debug_assert!(self.row[gap].1.is_none(), "a number has one value");
            self.row[gap].1 = Some(value);
            self.n_gaps -= 1;
        } else {
            self.late.insert(number, value);
        }
    }

    /// Returns the value with the lowest number.
    pub(super) fn first(&self) -> Option<&T> {
        let front = self.row.front().and_then(|(number, value)| Some((*number, value.as_ref()?)));
        let late = self.late.first_key_value().map(|(number, value)| (*number, value));
        match (front, late) {
            (Some(front), Some(late)) => Some(if front.0 < late.0 { front.1 } else { late.1 }),
            (front, late) => front.or(late).map(|(_, value)| value),
        }
    }

    /// Removes and returns the value of a number. In the middle of the row it leaves a gap.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        if self.row.front().is_some_and(|(first, _)| *first == number) {
            let (_, value) = self.row.pop_front()?;
            self.trim();
            return value;
        }
        let found = self.row.binary_search_by_key(&number, |(number, _)| *number);
        if let Ok(idx) = found
            && let Some(value) = self.row[idx].1.take()
        {
            self.n_gaps += 1;
            if self.n_gaps > GAPS_MAX.max(self.row.len() / 2) {
                self.row.retain(|(_, value)| value.is_some());
                self.n_gaps = 0;
            }
            return Some(value);
        }
        self.late.remove(&number)
    }

    /// Removes the gaps at the front. Frees the memory of a burst when its last entry has left.
    fn trim(&mut self) {
        while self.row.front().is_some_and(|(_, value)| value.is_none()) {
            self.row.pop_front();
            self.n_gaps -= 1;
        }
        if self.row.is_empty() && self.row.capacity() > ROW_KEPT {
            self.row = VecDeque::new();
        }
        debug_assert!(self.n_gaps < self.row.len().max(1), "the first entry of a row is not a gap");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a tree: `(true, n)` inserts `n`, `(false, n)` removes it; every other step removes the first.
        #[test]
        fn ordered_map_agrees_with_a_btree_map(steps in prop::collection::vec((any::<bool>(), 0_u64..300), 0..600)) {
            let (mut map, mut model) = (OrderedMap::default(), BTreeMap::new());
            for (inserts, number) in steps {
                if inserts && !model.contains_key(&number) {
                    map.insert(number, number);
                    model.insert(number, number);
                } else if !inserts {
                    let number = if number % 2 == 0 { map.first().copied().unwrap_or(number) } else { number };
                    prop_assert_eq!(map.remove(number), model.remove(&number));
                }
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.first(), model.first_key_value().map(|(_, value)| value));
                prop_assert!(map.row.len() <= 2 * model.len() + 2 * GAPS_MAX, "gaps are bounded");
            }
        }
    }
}
