//! Division by weights with Webster's method, also known as Sainte-Laguë's (`AllocateWebsterSeats` in Karmada's
//! `pkg/util/helper/webstermethod.go`, and `tieBreakerByUID` in its `pkg/util/helper/binding.go`).

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap},
};

use super::TargetCluster;

/// Maximum number of replicas that are given one by one. Most of a larger number are given at once, because it is a
/// field of a user's object.
const STEPS_MAX: i32 = 1_000;

/// Divides replicas over clusters by their weights and returns all of the clusters, ordered by name.
///
/// One replica after the other goes to the cluster with the largest `weight / (2 * replicas + 1)`. If several are
/// equal, the cluster with fewer replicas gets it, then the first by name. If the hash of `uid` is odd, the last by
/// name gets it instead, so that not every object of a control plane prefers the same cluster. Clusters keep the
/// replicas in `initial`, which count as theirs. A cluster with no weight comes last. With no weights at all, nothing
/// is divided. Negative numbers count as 0.
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
    if is_done || weights.values().all(|weight| *weight <= 0) {
        return initial.iter().map(owned).collect();
    }
    let is_reversed = !uid.is_empty() && fnv1a(uid) % 2 == 1;
    let mut parties: BTreeMap<&str, Party<'_>> = BTreeMap::new();
    for name in initial.keys().chain(weights.keys()) {
        let weight = weights.get(name).copied().unwrap_or_default().max(0);
        let seats = initial.get(name).copied().unwrap_or_default().max(0);
        parties.insert(name, Party { name, weight, seats, is_reversed });
    }
    let mut parties: Vec<_> = parties.into_values().collect();
    let left = if replicas > STEPS_MAX { allocate_in_bulk(&mut parties, replicas) } else { replicas };
    let mut divided: Vec<_> =
        allocate_one_by_one(parties, left).iter().map(|party| owned((&party.name.to_owned(), &party.seats))).collect();
    divided.sort_by(|left, right| left.name.cmp(&right.name));
    let is_full = divided.iter().any(|cluster| cluster.replicas == i32::MAX);
    let kept = initial.values().map(|replicas| i64::from(*replicas).max(0)).sum::<i64>();
    let expected = i64::from(replicas.max(0)) + kept;
    debug_assert!(is_full || total(&divided) == expected, "no replica is lost, and none is added");
    divided
}

/// Gives one replica after the other to the party that is next.
fn allocate_one_by_one(parties: Vec<Party<'_>>, replicas: i32) -> Vec<Party<'_>> {
    let mut queue = BinaryHeap::from(parties);
    for _ in 0..replicas {
        // The priority of a full party does not change any more, so it would be next for ever.
        let Some(mut next) = queue.peek_mut().filter(|next| next.seats < i32::MAX) else { break };
        next.seats += 1;
    }
    queue.into_vec()
}

/// Gives all replicas above a priority at once, and returns the number of replicas that are left for [`allocate_one_by_one`].
///
/// A priority falls with each replica, so every replica above a threshold is given before any other one. The threshold
/// is the lowest above which there are enough replicas. Those that are left have exactly this priority: at most one per
/// party, unless a party is full.
fn allocate_in_bulk(parties: &mut [Party<'_>], replicas: i32) -> i32 {
    let replicas_above =
        |threshold: f64| parties.iter().map(|party| i64::from(party.replicas_above(threshold, replicas))).sum::<i64>();
    let highest = parties.iter().map(Party::priority).fold(0.0, f64::max);
    // Positive floats are in the order of their bits.
    let (mut low, mut high) = (0, highest.to_bits());
    while low < high {
        let middle = low + (high - low) / 2;
        if replicas_above(f64::from_bits(middle)) <= i64::from(replicas) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let (threshold, mut left) = (f64::from_bits(high), replicas);
    for party in parties {
        let n_granted = party.replicas_above(threshold, replicas);
        party.seats = party.seats.saturating_add(n_granted);
        left -= n_granted;
    }
    left
}

/// Returns the replicas of all clusters together.
pub(super) fn total(clusters: &[TargetCluster]) -> i64 {
    clusters.iter().map(|cluster| i64::from(cluster.replicas)).sum()
}

/// A cluster in the queue for the next replica; the greatest gets it.
#[derive(Clone, Debug)]
struct Party<'a> {
    name: &'a str,
    weight: i64,
    seats: i32,
    is_reversed: bool,
}

impl Party<'_> {
    fn priority(&self) -> f64 {
        self.priority_with(self.seats)
    }

    /// Returns the priority that the party has with this number of seats.
    #[expect(clippy::cast_precision_loss, reason = "Karmada compares 64 bit floats, and ties depend on it")]
    fn priority_with(&self, seats: i32) -> f64 {
        self.weight as f64 / (2.0 * f64::from(seats) + 1.0)
    }

    /// Returns the number of replicas that the party gets while its priority is above the threshold, at most `max`.
    fn replicas_above(&self, threshold: f64, max: i32) -> i32 {
        let (mut low, mut high) = (0, max);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.priority_with(self.seats.saturating_add(middle)) > threshold {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        high
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

fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    fn parties(weights: &[i64], seats: &[i32]) -> Vec<Party<'static>> {
        let of = |(name, (weight, seats)): (&&'static str, (&i64, &i32))| Party {
            name,
            weight: *weight,
            seats: *seats,
            is_reversed: false,
        };
        NAMES.iter().zip(weights.iter().zip(seats)).map(of).collect()
    }

    fn seats(mut parties: Vec<Party<'_>>) -> Vec<i32> {
        parties.sort_by_key(|party| party.name);
        parties.iter().map(|party| party.seats).collect()
    }

    proptest! {
        #[test]
        fn bulk_division_equals_one_by_one_division(
            clusters in prop::collection::vec((0_i64..8, 0_i32..20), 1..6),
            replicas in 0_i32..300,
            reversed in any::<bool>(),
        ) {
            let (weights, initial): (Vec<_>, Vec<_>) = clusters.into_iter().unzip();
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let given = || {
                let mut given = parties(&weights, &initial);
                for party in &mut given {
                    party.is_reversed = reversed;
                }
                given
            };
            let mut fast = given();
            let left = allocate_in_bulk(&mut fast, replicas);
            prop_assert!(usize::try_from(left).unwrap() <= fast.len(), "{left} steps are left");
            prop_assert_eq!(seats(allocate_one_by_one(fast, left)), seats(allocate_one_by_one(given(), replicas)));
        }
    }

    #[test]
    fn largest_number_of_replicas_needs_few_steps() {
        for weights in [&[1][..], &[3, 2, 1], &[1, 1, 1, 1, 1, 1], &[i64::MAX, 1, 0]] {
            let mut parties = parties(weights, &[0; 6]);
            let left = allocate_in_bulk(&mut parties, i32::MAX);
            assert!(usize::try_from(left).unwrap() <= weights.len(), "{weights:?}: {left} steps");
        }
        let weights = [("a".to_owned(), 3), ("b".to_owned(), 2), ("c".to_owned(), 1)].into();
        let divided = divide(i32::MAX, &weights, &BTreeMap::new(), "");
        let replicas: Vec<_> = divided.iter().map(|cluster| cluster.replicas).collect();
        assert_eq!(replicas, [1_073_741_824, 715_827_882, 357_913_941]);
    }

    #[test]
    fn full_cluster_ends_the_division() {
        let weights = [("a".to_owned(), i64::MAX), ("b".to_owned(), 1)].into();
        let divided = divide(i32::MAX, &weights, &[("a".to_owned(), i32::MAX)].into(), "");
        assert_eq!(divided.iter().map(|cluster| cluster.replicas).collect::<Vec<_>>(), [i32::MAX, 0]);
    }
}
