//! Slots: equal ranges of the hash space. A key belongs to one slot, and a slot to at most one replica.

use std::fmt;

use kctl_apimachinery::fnv::hash64a;

use super::hash::hash_string;
use crate::key::ObjectKey;

/// The version of the division of keys into slots, and of slots among replicas. Each change of the hash, of what is hashed, or
/// of the seats that should own slots increases it.
///
/// It is one of the settings on which replicas have to agree. So two releases with different divisions never work at the
/// same time, not even during a rolling update.
///
/// Version 2: each seat gets its share of the slots, rounded down, or one more.
pub(crate) const DIVISION: u32 = 2;

/// Greatest number of slots. Each held slot costs one Lease write per renewal, and the printed role names each Lease.
pub const SLOTS_MAX: u32 = 256;

/// Maximum number of ranges in a selector, about 5 KB of a URL: many proxies reject requests of more than 8 KB. With more
/// ranges, the API server also selects some objects of other slots, which the replica skips.
const RANGES_MAX: usize = 48;

/// The part of a key that decides its slot. It is the same on all replicas of a program.
///
/// ```
/// use kctl_runtime::{key::ObjectKey, shard::{ShardBy, Slots}};
///
/// let by_namespace = Slots::new(24, ShardBy::Namespace);
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
    /// The namespace, in ranges that the API server can select: a replica requests only the objects of its slots (parameter
    /// `shardSelector`, [KEP-5866](https://github.com/kubernetes/enhancements/issues/5866), feature gate
    /// `ShardedListAndWatch`). A server without it sends all objects, and the replica filters them itself.
    ///
    /// The ranges are over FNV-1a hashes. It hardly spreads namespaces that differ only at their end, such as `team-1`
    /// to `team-99`: for them use [`Namespace`](Self::Namespace).
    NamespaceRange,
}

impl ShardBy {
    /// All variants. A variant whose name begins with the name of another variant precedes it.
    pub(crate) const ALL: [Self; 3] = [Self::Object, Self::NamespaceRange, Self::Namespace];

    /// Returns `true` if all objects of a namespace are in one slot.
    pub(crate) fn keeps_namespaces(self) -> bool {
        matches!(self, Self::Namespace | Self::NamespaceRange)
    }
}

impl fmt::Display for ShardBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "object",
            Self::Namespace => "namespace",
            Self::NamespaceRange => "namespace-range",
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
    pub(crate) fn with_salt(self, salt: u64) -> Self {
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

    /// Returns the slot of a key, from 0 to [`count`](Self::count) − 1. It is the same in each process.
    pub fn slot_for(&self, key: &ObjectKey) -> u32 {
        let hash = match (&key.namespace, self.by) {
            (Some(namespace), ShardBy::Namespace) => hash_string(namespace),
            (Some(namespace), ShardBy::NamespaceRange) => hash64a(namespace),
            (Some(_), ShardBy::Object) => hash_string(&key.to_string()),
            (None, ShardBy::NamespaceRange) => hash64a(&key.name),
            (None, _) => hash_string(&key.name),
        };
        self.slot_of_hash(hash ^ self.salt)
    }

    fn slot_of_hash(&self, hash: u64) -> u32 {
        // The product is less than n · 2^64, so the upper half is a slot's number.
        let slot = u32::try_from((u128::from(hash) * u128::from(self.n)) >> 64).unwrap_or_default();
        debug_assert!(slot < self.n, "each hash belongs to one of the slots");
        slot
    }

    /// Returns the smallest hash of a slot. For the slot after the last one it is 2⁶⁴.
    fn start(&self, slot: u32) -> u128 {
        debug_assert!(slot <= self.n, "the hash space ends with the last slot");
        (u128::from(slot) << 64).div_ceil(u128::from(self.n))
    }

    /// Returns a `shardSelector` that selects at least the namespaced objects of some slots, which are in ascending order. `None` if the API
    /// server can't select them, because the slots have another hash.
    pub(crate) fn selector(&self, slots: impl IntoIterator<Item = u32>) -> Option<String> {
        if self.by != ShardBy::NamespaceRange || self.salt != 0 {
            return None;
        }
        let mut ranges: Vec<(u128, u128)> = Vec::new();
        for slot in slots {
            let (start, end) = (self.start(slot), self.start(slot + 1));
            debug_assert!(
                ranges.last().is_none_or(|(_, last)| *last <= start),
                "gaps are computed between ascending slots"
            );
            match ranges.last_mut().filter(|(_, last)| *last == start) {
                Some((_, last)) => *last = end,
                None => ranges.push((start, end)),
            }
        }
        join_smallest_gaps(&mut ranges);
        // No selector selects nothing, so this one selects the namespaces with the hash 0.
        if ranges.is_empty() {
            ranges.push((0, 1));
        }
        let range = |(start, end): &(u128, u128)| {
            format!("shardRange(object.metadata.namespace, '{start:#018x}', '{end:#018x}')")
        };
        Some(ranges.iter().map(range).collect::<Vec<_>>().join(" || "))
    }
}

/// Joins the ranges with the smallest gaps until there are at most [`RANGES_MAX`].
fn join_smallest_gaps(ranges: &mut Vec<(u128, u128)>) {
    while ranges.len() > RANGES_MAX {
        let gap = |n: &usize| ranges[n + 1].0 - ranges[*n].1;
        let Some(smallest) = (0..ranges.len() - 1).min_by_key(gap) else { return };
        let (_, end) = ranges.remove(smallest + 1);
        ranges[smallest].1 = end;
    }
}

/// Returns the name of a slot's Lease.
pub fn slot_name(app: &str, slot: u32) -> String {
    format!("{app}-slot-{slot}")
}

pub(crate) fn seat_name(app: &str, seat: u32) -> String {
    format!("{app}-seat-{seat}")
}

/// Returns `true` for the names of Leases that slots and seats can have. Other Leases may have the app's label too.
pub(crate) fn is_slot_or_seat_name(app: &str, name: &str) -> bool {
    let number = name.rsplit('-').next().and_then(|number| number.parse().ok());
    number.is_some_and(|n: u32| n < SLOTS_MAX && (slot_name(app, n) == name || seat_name(app, n) == name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_slots_and_seats_have_their_names() {
        for (name, is_one) in [
            ("web-slot-0", true),
            ("web-seat-255", true),
            ("web-slot-256", false),
            ("web-slot-00", false),
            ("web", false),
            ("web-2-slot-0", false),
            ("web-backup-0", false),
        ] {
            assert_eq!(is_slot_or_seat_name("web", name), is_one, "{name}");
        }
    }

    #[test]
    fn slots_are_equal_ranges_of_the_hash_space() {
        let slots = Slots::new(4, ShardBy::Object);
        let quarter = 1_u64 << 62;
        for (hash, slot) in [(0, 0), (quarter - 1, 0), (quarter, 1), (3 * quarter, 3), (u64::MAX, 3)] {
            assert_eq!(slots.slot_of_hash(hash), slot, "{hash:#x}");
        }
    }

    #[test]
    fn shard_by_namespace_keeps_namespace_with_its_objects() {
        let (namespace, object) = (ObjectKey::new(None, "shop"), ObjectKey::new(Some("shop"), "web"));
        for by in [ShardBy::Namespace, ShardBy::NamespaceRange] {
            let slots = Slots::new(SLOTS_MAX, by);
            assert_eq!(slots.slot_for(&namespace), slots.slot_for(&object));
        }
        let by_object = Slots::new(SLOTS_MAX, ShardBy::Object);
        assert_ne!(by_object.slot_for(&namespace), by_object.slot_for(&object));
    }

    /// If this fails, [`DIVISION`] has to increase.
    #[test]
    fn keys_keep_their_slots_within_a_division_version() {
        let keys = [(Some("default"), "web"), (Some("default"), "api"), (Some("shop"), "web"), (None, "shop")];
        let slots_by = |by: ShardBy| {
            let slots = Slots::new(SLOTS_MAX, by);
            keys.map(|(namespace, name)| slots.slot_for(&ObjectKey::new(namespace, name)))
        };
        let (by_object, by_namespace) = ([32, 15, 188, 108], [241, 241, 108, 108]);
        assert_eq!((DIVISION, slots_by(ShardBy::Object), slots_by(ShardBy::Namespace)), (2, by_object, by_namespace));
        assert_eq!(slots_by(ShardBy::NamespaceRange), [235, 235, 70, 70]);
    }

    #[test]
    fn selector_joins_neighbouring_slots() {
        let range = |start: &str, end: &str| format!("shardRange(object.metadata.namespace, '{start}', '{end}')");
        let (quarter, half) = ("0x4000000000000000", "0x8000000000000000");
        let (zero, end) = ("0x0000000000000000", "0x10000000000000000");
        let slots = Slots::new(4, ShardBy::NamespaceRange);
        assert_eq!(slots.selector([0, 1]), Some(range(zero, half)));
        assert_eq!(slots.selector([0, 2, 3]), Some(format!("{} || {}", range(zero, quarter), range(half, end))));
        assert_eq!(slots.selector([]), Some(range(zero, "0x0000000000000001")));
        assert_eq!(slots.selector(slots.all()), Some(range(zero, end)));
        assert_eq!(Slots::new(4, ShardBy::Namespace).selector([0]), None, "API servers have another hash");
        assert_eq!(slots.with_salt(1).selector([0]), None);
    }

    #[test]
    fn selector_of_many_ranges_is_short() {
        let slots = Slots::new(SLOTS_MAX, ShardBy::NamespaceRange);
        let selector = slots.selector(slots.all().step_by(2)).unwrap();
        assert_eq!(selector.matches("shardRange").count(), RANGES_MAX);
        let mut ranges: Vec<(u128, u128)> =
            slots.all().step_by(2).map(|slot| (slots.start(slot), slots.start(slot + 1))).collect();
        let slots_before = ranges.clone();
        join_smallest_gaps(&mut ranges);
        let is_selected = |(start, end): &(u128, u128)| ranges.iter().any(|(from, to)| from <= start && end <= to);
        assert!(slots_before.iter().all(is_selected), "each slot remains selected");
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
            for by in ShardBy::ALL {
                let slots = Slots::new(n, by);
                prop_assert!(slots.all().contains(&slots.slot_for(&ObjectKey::new(Some(&namespace), &name))));
            }
        }

        #[test]
        fn slot_starts_at_its_smallest_hash(n in 1..=SLOTS_MAX, slot in 0..SLOTS_MAX) {
            let (slots, slot) = (Slots::new(n, ShardBy::NamespaceRange), slot % n);
            let start = slots.start(slot);
            prop_assert_eq!(slots.slot_of_hash(u64::try_from(start).unwrap()), slot);
            prop_assert_eq!(slots.slot_of_hash(u64::try_from(slots.start(slot + 1) - 1).unwrap()), slot);
        }
    }
}
