//! Slots: equal ranges of the hash space. A key belongs to one slot, and a slot to at most one replica.

use std::fmt;

use super::hash::hash_string;
use crate::key::ObjectKey;

/// The version of the division of keys into slots. Each change of the hash, or of what is hashed, increases it.
///
/// It is one of the settings on which replicas have to agree. So two releases with different divisions never work at the
/// same time, not even during a rolling update.
pub(crate) const DIVISION: u32 = 1;

/// Greatest number of slots. Each held slot costs one Lease write per renewal, and the printed role names each Lease.
pub const SLOTS_MAX: u32 = 256;

/// The part of a key that decides its slot. It is the same on all replicas of a program.
///
/// ```
/// use kctl_runtime::{key::ObjectKey, shard::{ShardBy, Slots}};
///
/// let by_namespace = Slots::new(16, ShardBy::Namespace);
/// let [web, api] = ["web", "api"].map(|name| by_namespace.slot_for(&ObjectKey::new(Some("shop"), name)));
/// assert_eq!(web, api);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ShardBy {
    /// Namespace and name. Objects spread evenly, also within one namespace. The default.
    #[default]
    Object,
    /// The namespace: all objects of a namespace are reconciled by one replica. A cluster-scoped object counts by its
    /// name, so a `Namespace` belongs to the slot of the objects in it.
    Namespace,
}

impl fmt::Display for ShardBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "object",
            Self::Namespace => "namespace",
        })
    }
}

/// The division of all keys into slots.
///
/// Slot `i` of `n` contains the hashes from `i · 2⁶⁴ / n` to the start of the next slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Number of slots. Invariant: from 1 to [`SLOTS_MAX`].
    n: u32,
    by: ShardBy,
    /// Changes the hash: replicas with different salts disagree. Always 0, except in tests of the simulator.
    salt: u64,
}

impl Slots {
    /// Divides the keys into `n` slots, at least one and at most [`SLOTS_MAX`].
    pub fn new(n: u32, by: ShardBy) -> Self {
        Self { n: n.clamp(1, SLOTS_MAX), by, salt: 0 }
    }

    /// Returns slots of another hash.
    pub(crate) fn salted(self, salt: u64) -> Self {
        Self { salt, ..self }
    }

    /// Returns the number of slots.
    pub fn count(&self) -> u32 {
        self.n
    }

    /// Returns the part of the key that decides the slot.
    pub fn shard_by(&self) -> ShardBy {
        self.by
    }

    /// Returns the numbers of all slots.
    pub fn all(&self) -> std::ops::Range<u32> {
        0..self.n
    }

    /// Returns the slot of a key.
    pub fn slot_for(&self, key: &ObjectKey) -> u32 {
        let hash = match (&key.namespace, self.by) {
            (Some(namespace), ShardBy::Namespace) => hash_string(namespace),
            (Some(_), ShardBy::Object) => hash_string(&key.to_string()),
            (None, _) => hash_string(&key.name),
        };
        self.of_hash(hash ^ self.salt)
    }

    fn of_hash(&self, hash: u64) -> u32 {
        // The product is less than n · 2^64, so the upper half is a slot's number.
        let slot = u32::try_from((u128::from(hash) * u128::from(self.n)) >> 64).unwrap_or_default();
        debug_assert!(slot < self.n, "each hash belongs to one of the slots");
        slot
    }
}

/// Returns the name of a slot's Lease.
pub fn slot_name(app: &str, slot: u32) -> String {
    format!("{app}-slot-{slot}")
}

pub(crate) fn seat_name(app: &str, seat: u32) -> String {
    format!("{app}-seat-{seat}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_are_equal_ranges_of_the_hash_space() {
        let slots = Slots::new(4, ShardBy::Object);
        let quarter = 1_u64 << 62;
        for (hash, slot) in [(0, 0), (quarter - 1, 0), (quarter, 1), (3 * quarter, 3), (u64::MAX, 3)] {
            assert_eq!(slots.of_hash(hash), slot, "{hash:#x}");
        }
    }

    #[test]
    fn shard_by_namespace_keeps_namespace_with_its_objects() {
        let slots = Slots::new(SLOTS_MAX, ShardBy::Namespace);
        let (namespace, object) = (ObjectKey::new(None, "shop"), ObjectKey::new(Some("shop"), "web"));
        assert_eq!(slots.slot_for(&namespace), slots.slot_for(&object));
        let by_object = Slots::new(SLOTS_MAX, ShardBy::Object);
        assert_ne!(by_object.slot_for(&namespace), by_object.slot_for(&object));
    }

    /// If this fails, [`DIVISION`] has to increase.
    #[test]
    fn division_of_keys_is_that_of_its_version() {
        let keys = [(Some("default"), "web"), (Some("default"), "api"), (Some("shop"), "web"), (None, "shop")];
        let slots_by = |by: ShardBy| {
            let slots = Slots::new(SLOTS_MAX, by);
            keys.map(|(namespace, name)| slots.slot_for(&ObjectKey::new(namespace, name)))
        };
        let (by_object, by_namespace) = ([32, 15, 188, 108], [241, 241, 108, 108]);
        assert_eq!((DIVISION, slots_by(ShardBy::Object), slots_by(ShardBy::Namespace)), (1, by_object, by_namespace));
    }

    #[test]
    fn number_of_slots_is_bounded() {
        for (requested, n) in [(0, 1), (1, 1), (SLOTS_MAX, SLOTS_MAX), (SLOTS_MAX + 1, SLOTS_MAX)] {
            assert_eq!(Slots::new(requested, ShardBy::Object).count(), n);
        }
    }

    proptest! {
        #[test]
        fn every_key_has_a_slot(n in 1..=SLOTS_MAX, namespace in "[a-z]{0,8}", name in "[a-z]{1,8}") {
            for by in [ShardBy::Object, ShardBy::Namespace] {
                let slots = Slots::new(n, by);
                prop_assert!(slots.all().contains(&slots.slot_for(&ObjectKey::new(Some(&namespace), &name))));
            }
        }
    }
}
