//! The entries of all keys, found by key or by a number. A key is hashed when it is added and when it is handed back;
//! between the two, the queue uses the number.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The number of a known key. It is reused after the key was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyId(usize);

/// Number of slots beyond which everything is freed with the last key.
const SLOTS_KEPT: usize = 64;
/// Number of slots that are allocated and freed together. A key that remains after a burst, because it fails or waits for
/// long, keeps this many.
const CHUNK_LEN: usize = 16;

/// A map from keys to values that also gives each key a [`KeyId`].
pub(super) struct Keys<K, V> {
    hasher: FixedState,
    table: HashTable<KeyId>,
    /// The slots by id. Invariant: a slot has a key exactly where `table` has the id, and none exactly where `free` has it.
    chunks: Vec<Chunk<K, V>>,
    free: Vec<KeyId>,
    /// Number of ids, which `table` and `free` share.
    n_slots: usize,
    /// The chunk that lost its last key most recently. It remains allocated, so that a key that comes and goes costs no
    /// allocation. Invariant: each other chunk without a key is freed.
    spare: Option<usize>,
}

/// The slots of [`CHUNK_LEN`] successive ids.
struct Chunk<K, V> {
    /// Empty while the chunk is freed.
    slots: Vec<Slot<K, V>>,
    n_keys: usize,
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
        Self {
            hasher: FixedState::default(),
            table: HashTable::new(),
            chunks: Vec::new(),
            free: Vec::new(),
            n_slots: 0,
            spare: None,
        }
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
        let id = self.free.pop().unwrap_or_else(|| {
            self.n_slots += 1;
            KeyId(self.n_slots - 1)
        });
        self.fill(id, Slot { hash, key: Some(key), value: V::default() });
        let chunks = &self.chunks;
        self.table.insert_unique(hash, id, |id| chunks[id.0 / CHUNK_LEN].slots[id.0 % CHUNK_LEN].hash);
        debug_assert_eq!(self.table.len() + self.free.len(), self.n_slots, "a slot has a key or is free");
        id
    }

    /// Puts a key into its slot, whose chunk may be new or freed.
    fn fill(&mut self, id: KeyId, slot: Slot<K, V>) {
        let index = id.0 / CHUNK_LEN;
        if index == self.chunks.len() {
            self.chunks.push(Chunk { slots: Vec::new(), n_keys: 0 });
        }
        let chunk = &mut self.chunks[index];
        if chunk.slots.is_empty() {
            let empty = |_offset| Slot { hash: 0, key: None, value: V::default() };
            chunk.slots = (0..CHUNK_LEN).map(empty).collect();
        }
        if self.spare == Some(index) {
            self.spare = None;
        }
        let free = &mut chunk.slots[id.0 % CHUNK_LEN];
        debug_assert!(free.key.is_none(), "a free slot has no key");
        *free = slot;
        chunk.n_keys += 1;
    }

    /// Returns the key of a number, or `None` after it was removed.
    pub(super) fn key(&self, id: KeyId) -> Option<&K> {
        self.chunks.get(id.0 / CHUNK_LEN)?.slots.get(id.0 % CHUNK_LEN)?.key.as_ref()
    }

    pub(super) fn value(&self, id: KeyId) -> &V {
        &self.chunks[id.0 / CHUNK_LEN].slots[id.0 % CHUNK_LEN].value
    }

    pub(super) fn value_mut(&mut self, id: KeyId) -> &mut V {
        &mut self.chunks[id.0 / CHUNK_LEN].slots[id.0 % CHUNK_LEN].value
    }

    /// Removes a key. Does nothing if the ID has no key.
    ///
    /// The first list makes all keys of a controller ready at once. Their memory is freed as they are done, although some
    /// of them keep their entries.
    pub(super) fn remove(&mut self, id: KeyId) {
        let index = id.0 / CHUNK_LEN;
        let Some(chunk) = self.chunks.get_mut(index) else { return };
        let Some(slot) = chunk.slots.get_mut(id.0 % CHUNK_LEN).filter(|slot| slot.key.is_some()) else { return };
        slot.key = None;
        slot.value = V::default();
        if let Ok(entry) = self.table.find_entry(slot.hash, |candidate| *candidate == id) {
            entry.remove();
        }
        self.free.push(id);
        debug_assert_eq!(self.table.len() + self.free.len(), self.n_slots, "a slot has a key or is free");
        chunk.n_keys -= 1;
        if self.table.is_empty() && self.n_slots > SLOTS_KEPT {
            *self = Self::default();
        } else if chunk.n_keys == 0
            && let Some(earlier) = self.spare.replace(index)
        {
            debug_assert_ne!(earlier, index, "a chunk that gets a key is not the spare one");
            self.chunks[earlier].slots = Vec::new();
        }
    }

    pub(super) fn ids(&self, matches: impl Fn(&K) -> bool) -> Vec<KeyId> {
        let slots = self.chunks.iter().enumerate().flat_map(|(index, chunk)| {
            let first = index * CHUNK_LEN;
            chunk.slots.iter().enumerate().map(move |(offset, slot)| (KeyId(first + offset), slot))
        });
        slots.filter(|(_, slot)| slot.key.as_ref().is_some_and(&matches)).map(|(id, _)| id).collect()
    }

    /// Iterates over keys and values, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let slots = self.chunks.iter().flat_map(|chunk| chunk.slots.iter());
        slots.filter_map(|slot| Some((slot.key.as_ref()?, &slot.value)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn n_allocated(keys: &Keys<u32, u32>) -> usize {
        keys.chunks.iter().map(|chunk| chunk.slots.capacity()).sum()
    }

    #[test]
    fn memory_of_a_burst_is_freed() {
        let mut keys = Keys::<u32, u32>::default();
        let ids: Vec<KeyId> = (0..10_000).map(|key| keys.ensure(key)).collect();
        let stays = ids[5_000];
        for id in ids.iter().filter(|id| **id != stays) {
            keys.remove(*id);
        }
        assert_eq!(n_allocated(&keys), 2 * CHUNK_LEN, "one for the key that is kept, and a spare one");
        assert_eq!(keys.key(stays), Some(&5_000), "its id remains valid");
        keys.remove(stays);
        keys.remove(stays);
        assert_eq!((keys.chunks.capacity(), keys.free.capacity(), keys.table.capacity()), (0, 0, 0));
        assert_eq!((keys.key(stays), keys.len()), (None, 0));
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
                prop_assert!(keys.n_slots <= 40, "ids are used again");
                prop_assert!(n_allocated(&keys) <= CHUNK_LEN * (keys.len() + 1), "chunks without a key are freed");
            }
        }
    }
}
