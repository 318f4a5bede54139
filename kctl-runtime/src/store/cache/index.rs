//! Indexes: maps that find objects by something else than their key.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    hash::{Hash, Hasher},
    sync::Arc,
};

use foldhash::fast::FixedState;

use crate::store::IndexFn;
use crate::{key::ObjectKey, object::Stored};

/// A pointer to an object, compared and hashed by the object's key. Invariant of all sets of these: each change
/// replaces the entry, because an old state would remain in memory otherwise.
#[derive(Clone)]
pub(super) struct ByKey(pub(super) Arc<Stored>);

impl Borrow<ObjectKey> for ByKey {
    fn borrow(&self) -> &ObjectKey {
        self.0.key()
    }
}
impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}
impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}
impl Eq for ByKey {}
impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

/// A hash map with a fixed seed, so that unordered iteration is the same in each run of a simulation.
pub(super) type Map<K, V> = HashMap<K, V, FixedState>;

/// An index that a user's function defines. It remembers the values of each object. Calling the function on the old
/// state again would decode that state, and different values would leave a stale entry in the index.
pub(super) struct UserIndex {
    pub(super) name: &'static str,
    values_of: IndexFn,
    /// The objects of each value. Invariant: no set is empty.
    keys: Map<String, BTreeSet<ObjectKey>>,
    /// The values of each object that has any. Invariant: empty exactly if `keys` is.
    values: Map<ObjectKey, Box<[String]>>,
}

impl UserIndex {
    pub(super) fn build<'a>(
        name: &'static str,
        values_of: IndexFn,
        objects: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> Self {
        let mut index = Self { name, values_of, keys: Map::default(), values: Map::default() };
        for object in objects {
            index.put(object);
        }
        index
    }

    pub(super) fn get(&self, value: &str) -> Option<&BTreeSet<ObjectKey>> {
        self.keys.get(value)
    }

    /// Adds an object, or replaces the values of its last state. Costs nothing more than the function if they are equal.
    pub(super) fn put(&mut self, object: &Stored) {
        let (key, values) = (object.key(), (self.values_of)(object).into_boxed_slice());
        if self.values.get(key).map_or(values.is_empty(), |current| **current == *values) {
            return;
        }
        self.take(key);
        if !values.is_empty() {
            for value in &values {
                self.keys.entry(value.clone()).or_default().insert(key.clone());
            }
            self.values.insert(key.clone(), values);
        }
        debug_assert_eq!(self.values.is_empty(), self.keys.is_empty(), "both hold the same objects");
    }

    /// Removes an object, by the values that are remembered for it.
    pub(super) fn take(&mut self, key: &ObjectKey) {
        for value in self.values.remove(key).into_iter().flatten() {
            take(&mut self.keys, &value, key);
        }
        debug_assert_eq!(self.values.is_empty(), self.keys.is_empty(), "both hold the same objects");
    }
}

/// Removes a key from the set under `value`. Empty sets are removed, so that an index never grows with values that no
/// object has.
pub(super) fn take<V, Q, O>(index: &mut Map<V, BTreeSet<O>>, value: &Q, key: &ObjectKey)
where
    V: Eq + Hash + Borrow<Q>,
    Q: Eq + Hash + ?Sized,
    O: Ord + Borrow<ObjectKey>,
{
    if let Some(keys) = index.get_mut(value) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(value);
        }
    }
}
