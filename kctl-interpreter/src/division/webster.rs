//! Division by weights with Webster's method, also known as Sainte-Laguë's.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap},
};

use super::TargetCluster;

/// Divides replicas over clusters by their weights and returns all of the clusters, ordered by name.
///
/// One replica after the other goes to the cluster with the largest `weight / (2 * replicas + 1)`. If several are
/// equal, the cluster with fewer replicas gets it, then the first by name. If the hash of `uid` is odd, the last by
/// name gets it instead, so that not every object of a control plane prefers the same cluster. Clusters keep the
/// replicas in `initial`, which count as theirs. A cluster with no weight comes last. With no weights at all, nothing
/// is divided.
///
/// ```
/// use kctl_interpreter::division::divide;
///
/// let weights = [("a".to_owned(), 2), ("b".to_owned(), 1)].into();
/// let divided = divide(6, &weights, &Default::default(), "uid");
/// assert_eq!(divided.iter().map(|cluster| cluster.replicas).collect::<Vec<_>>(), [4, 2]);
/// ```
pub fn divide(
    replicas: i32,
    weights: &BTreeMap<String, i64>,
    initial: &BTreeMap<String, i32>,
    uid: &str,
) -> Vec<TargetCluster> {
    let owned = |(name, replicas): (&String, &i32)| TargetCluster { name: name.clone(), replicas: *replicas };
    let is_done = replicas == 0 && !initial.is_empty();
    if is_done || weights.values().all(|weight| *weight == 0) {
        return initial.iter().map(owned).collect();
    }
    let is_reversed = !uid.is_empty() && fnv1a(uid) % 2 == 1;
    let mut parties: BTreeMap<&str, Party<'_>> = BTreeMap::new();
    for name in initial.keys().chain(weights.keys()) {
        let weight = weights.get(name).copied().unwrap_or_default();
        let seats = initial.get(name).copied().unwrap_or_default();
        parties.insert(name, Party { name, weight, seats, is_reversed });
    }
    let mut queue: BinaryHeap<_> = parties.into_values().collect();
    for _ in 0..replicas {
        if let Some(mut next) = queue.peek_mut() {
            next.seats = next.seats.saturating_add(1);
        }
    }
    let mut divided: Vec<_> = queue.into_iter().map(|party| owned((&party.name.to_owned(), &party.seats))).collect();
    divided.sort_by(|left, right| left.name.cmp(&right.name));
    let is_full = divided.iter().any(|cluster| cluster.replicas == i32::MAX);
    let expected = i64::from(replicas.max(0)) + initial.values().copied().map(i64::from).sum::<i64>();
    debug_assert!(is_full || total(&divided) == expected, "no replica is lost, and none is added");
    divided
}

/// Returns the replicas of all clusters together.
pub(super) fn total(clusters: &[TargetCluster]) -> i64 {
    clusters.iter().map(|cluster| i64::from(cluster.replicas)).sum()
}

/// A cluster in the queue for the next replica; the greatest gets it.
struct Party<'a> {
    name: &'a str,
    weight: i64,
    seats: i32,
    is_reversed: bool,
}

impl Party<'_> {
    #[expect(clippy::cast_precision_loss, reason = "Karmada compares 64 bit floats, and ties depend on it")]
    fn priority(&self) -> f64 {
        self.weight as f64 / (2.0 * f64::from(self.seats) + 1.0)
    }
}

impl Ord for Party<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = if self.is_reversed { self.name.cmp(other.name) } else { other.name.cmp(self.name) };
        self.priority().total_cmp(&other.priority()).then(other.seats.cmp(&self.seats)).then(by_name)
    }
}

impl PartialOrd for Party<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Party<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Party<'_> {}

/// Returns the 32-bit FNV-1a hash of a string.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
