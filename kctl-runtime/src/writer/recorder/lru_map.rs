//! A map with a bounded number of entries, from which the least recently used one is removed.
//!
//! client-go uses an `lru.Cache` of 4,096 entries for the same purpose. Each use costs a removal and an insertion in a
//! `BTreeMap`, which is cheap compared with the request that follows.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

/// A least-recently-used map of at most `max` entries.
pub(super) struct LruMap<K, V> {
    /// Maximum number of entries.
    max: usize,
    /// Number of uses so far: the next number in `order`.
    uses: u64,
    /// Values with the number of their last use.
    entries: HashMap<K, (u64, V)>,
    /// Invariant: one entry for each of `entries`, under the number of its last use.
    order: BTreeMap<u64, K>,
}

impl<K: Hash + Eq + Clone, V> LruMap<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, uses: 0, entries: HashMap::new(), order: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value and marks it as used.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (number, value) = self.entries.get_mut(key)?;
        self.uses += 1;
        self.order.remove(number);
        *number = self.uses;
        self.order.insert(self.uses, key.clone());
        Some(value)
    }

    /// Inserts a value and returns the one that was removed to make room.
    ///
    /// A known key gets the new value, and its old one is dropped without being returned.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.remove(&key);
        let oldest = if self.entries.len() == self.max { self.order.first_key_value() } else { None };
        let oldest = oldest.map(|(_, key)| key.clone()).and_then(|key| self.remove(&key));
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, (self.uses, value));
        debug_assert!(self.entries.len() <= self.max, "an entry was removed at the bound");
        debug_assert_eq!(self.entries.len(), self.order.len(), "each entry has one last use");
        oldest
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (number, value) = self.entries.remove(key)?;
        let key = self.order.remove(&number);
        debug_assert!(key.is_some(), "each entry has one last use");
        Some(value)
    }

    /// Removes entries, the least recently used first, until one does not match.
    pub(super) fn evict_while(&mut self, over: impl Fn(&V) -> bool) -> Vec<V> {
        let mut taken = Vec::new();
        while let Some(key) = self.order.first_key_value().map(|(_, key)| key.clone()) {
            if !self.entries.get(&key).is_some_and(|(_, value)| over(value)) {
                break;
            }
            taken.extend(self.remove(&key));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_entry_is_evicted() {
        let mut recent = LruMap::new(3);
        for key in ["a", "b", "c"] {
            assert_eq!(recent.insert(key, key), None);
        }
        assert_eq!(recent.get_mut(&"a"), Some(&mut "a"));
        assert_eq!(recent.insert("b", "b again"), None, "it takes its own place");
        assert_eq!(recent.insert("d", "d"), Some("c"));
        assert_eq!(recent.evict_while(|value| value.len() == 1), ["a"]);
        assert_eq!(recent.evict_while(|_| true), ["b again", "d"]);
        assert_eq!((recent.entries.len(), recent.order.len()), (0, 0));
    }
}
