//! The entries of all keys, found by key or by a number. A key is hashed when it is added and when it is handed back;
//! between the two, the queue uses the number.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The number of a known key. It is reused after the key was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyId(usize);

/// Number of slots that remain allocated in a queue without keys.
const SLOTS_KEPT: usize = 64;

/// A map from keys to values that also gives each key a [`KeyId`].
pub(super) struct Keys<K, V> {
    hasher: FixedState,
    table: HashTable<KeyId>,
    /// By id. Invariant: with a key exactly where `table` has the id, without one exactly where `free` has it.
    slots: Vec<Slot<K, V>>,
    free: Vec<KeyId>,
}

/// The entry of one number.
struct Slot<K, V> {
    /// The hash of the key, so that the table can grow without hashing keys again.
    hash: u64,
    key: Option<K>,
    value: V,
}

impl<K, V> Default for Keys<K, V> {
    fn default() -> Self {
        Self { hasher: FixedState::default(), table: HashTable::new(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<K: Eq + Hash, V: Default> Keys<K, V> {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of a key, or `None` if it has no entry.
    pub(super) fn find(&self, key: &K) -> Option<KeyId> {
        self.find_hashed(self.hasher.hash_one(key), key)
    }

    fn find_hashed(&self, hash: u64, key: &K) -> Option<KeyId> {
        self.table.find(hash, |id| self.key(*id) == Some(key)).copied()
    }

    /// Returns the ID of a key, after adding the key with a default value if it is unknown.
    pub(super) fn ensure(&mut self, key: K) -> KeyId {
        let hash = self.hasher.hash_one(&key);
        if let Some(id) = self.find_hashed(hash, &key) {
            return id;
        }
        let slot = Slot { hash, key: Some(key), value: V::default() };
        let id = self.free.pop().unwrap_or(KeyId(self.slots.len()));
        if let Some(free) = self.slots.get_mut(id.0) {
            debug_assert!(free.key.is_none(), "a free slot has no key");
            *free = slot;
        } else {
            self.slots.push(slot);
        }
        let slots = &self.slots;
        self.table.insert_unique(hash, id, |id| slots[id.0].hash);
        debug_assert_eq!(self.table.len() + self.free.len(), self.slots.len(), "a slot has a key or is free");
        id
    }

    /// Returns the key of a number, or `None` after it was removed.
    pub(super) fn key(&self, id: KeyId) -> Option<&K> {
        self.slots.get(id.0)?.key.as_ref()
    }

    pub(super) fn value(&self, id: KeyId) -> &V {
        &self.slots[id.0].value
    }

    pub(super) fn value_mut(&mut self, id: KeyId) -> &mut V {
        &mut self.slots[id.0].value
    }

    /// Removes a key. Does nothing if the ID has no key.
    ///
    /// The first list makes all keys of a controller ready at once. Their memory is freed when the last one is done.
    pub(super) fn remove(&mut self, id: KeyId) {
        let Some(slot) = self.slots.get_mut(id.0).filter(|slot| slot.key.is_some()) else { return };
        slot.key = None;
        slot.value = V::default();
        if let Ok(entry) = self.table.find_entry(slot.hash, |candidate| *candidate == id) {
            entry.remove();
        }
        self.free.push(id);
        debug_assert_eq!(self.table.len() + self.free.len(), self.slots.len(), "a slot has a key or is free");
        if self.table.is_empty() && self.slots.len() > SLOTS_KEPT {
            *self = Self::default();
        }
    }

    pub(super) fn ids(&self, matches: impl Fn(&K) -> bool) -> Vec<KeyId> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, slot)| slot.key.as_ref().is_some_and(&matches)).map(|(index, _)| KeyId(index)).collect()
    }

    /// Iterates over keys and values, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.slots.iter().filter_map(|slot| Some((slot.key.as_ref()?, &slot.value)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn memory_of_a_burst_is_freed() {
        let mut keys = Keys::<u32, u32>::default();
        let ids: Vec<KeyId> = (0..1000).map(|key| keys.ensure(key)).collect();
        for id in &ids[1..] {
            keys.remove(*id);
        }
        assert!(keys.slots.capacity() >= 1000, "ids of other keys stay valid");
        keys.remove(ids[0]);
        keys.remove(ids[0]);
        assert_eq!((keys.slots.capacity(), keys.free.capacity(), keys.table.capacity()), (0, 0, 0));
        assert_eq!((keys.key(ids[0]), keys.len()), (None, 0));
        let id = keys.ensure(7);
        assert_eq!(keys.key(id), Some(&7));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a map: `(true, n)` makes `n` known and counts it, `(false, n)` removes it.
        #[test]
        fn keys_are_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..40), 0..300)) {
            let (mut keys, mut model) = (Keys::<u32, u32>::default(), HashMap::new());
            for (adds, key) in steps {
                if adds {
                    let id = keys.ensure(key);
                    *keys.value_mut(id) += 1;
                    *model.entry(key).or_insert(0) += 1;
                } else if let Some(id) = keys.find(&key) {
                    keys.remove(id);
                    keys.remove(id);
                    prop_assert!(model.remove(&key).is_some());
                }
                prop_assert_eq!(keys.find(&key).map(|id| *keys.value(id)), model.get(&key).copied());
                prop_assert_eq!(keys.len(), model.len());
                prop_assert_eq!(keys.iter().map(|(key, count)| (*key, *count)).collect::<HashMap<_, _>>(), model.clone());
                prop_assert!(keys.slots.len() <= 40, "ids are used again");
            }
        }
    }
}
