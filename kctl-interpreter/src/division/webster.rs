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

/// Divides replicas over clusters by their weights. Returns the clusters of `weights` and `initial`, ordered by name.
///
/// One replica after the other goes to the cluster with the largest `weight / (2 * replicas + 1)`. If several are
/// equal, the cluster with fewer replicas gets it, then the first by name. If the hash of `uid` is odd, the last by
/// name gets it instead. So not every object of a control plane prefers the same cluster. Clusters keep the replicas in
/// `initial`, which count as theirs. A cluster with no weight comes last. Negative numbers count as 0.
///
/// If no weight is positive, or if no replicas are added to a non-empty `initial`, the result is `initial` as it is.
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
    let mut clusters: BTreeMap<&str, WeightedCluster<'_>> = BTreeMap::new();
    for name in initial.keys().chain(weights.keys()) {
        let weight = weights.get(name).copied().unwrap_or_default().max(0);
        let allocated = initial.get(name).copied().unwrap_or_default().max(0);
        clusters.insert(name, WeightedCluster { name, weight, allocated, is_reversed });
    }
    let mut clusters: Vec<_> = clusters.into_values().collect();
    let left = if replicas > STEPS_MAX { allocate_in_bulk(&mut clusters, replicas) } else { replicas };
    let target =
        |cluster: &WeightedCluster<'_>| TargetCluster { name: cluster.name.to_owned(), replicas: cluster.allocated };
    let mut divided: Vec<_> = allocate_one_by_one(clusters, left).iter().map(target).collect();
    divided.sort_by(|left, right| left.name.cmp(&right.name));
    let is_full = divided.iter().any(|cluster| cluster.replicas == i32::MAX);
    let kept = initial.values().map(|replicas| i64::from(*replicas).max(0)).sum::<i64>();
    let expected = i64::from(replicas.max(0)) + kept;
    debug_assert!(is_full || total_replicas(&divided) == expected, "no replica is lost, and none is added");
    divided
}

/// Gives one replica after the other to the cluster that is next.
fn allocate_one_by_one(clusters: Vec<WeightedCluster<'_>>, replicas: i32) -> Vec<WeightedCluster<'_>> {
    let mut queue = BinaryHeap::from(clusters);
    for _ in 0..replicas {
        // The priority of a full cluster does not change any more, so it would always be next.
        let Some(mut next) = queue.peek_mut().filter(|next| next.allocated < i32::MAX) else { break };
        next.allocated += 1;
    }
    queue.into_vec()
}

/// Gives all replicas above a priority at once, and returns the number of replicas that are left for [`allocate_one_by_one`].
///
/// A priority falls with each replica, so every replica above a threshold is given before any other one. The threshold
/// is the lowest one with at most `replicas` replicas above it. The replicas that are left have exactly this priority:
/// at most one per cluster, unless a cluster is full.
fn allocate_in_bulk(clusters: &mut [WeightedCluster<'_>], replicas: i32) -> i32 {
    let replicas_above = |threshold: f64| -> i64 {
        clusters.iter().map(|cluster| i64::from(cluster.replicas_above(threshold, replicas))).sum()
    };
    let highest = clusters.iter().map(WeightedCluster::priority).fold(0.0, f64::max);
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
    for cluster in clusters {
        let n_granted = cluster.replicas_above(threshold, replicas);
        cluster.allocated = cluster.allocated.saturating_add(n_granted);
        left -= n_granted;
    }
    left
}

/// Returns the replicas of all clusters together.
pub(super) fn total_replicas(clusters: &[TargetCluster]) -> i64 {
    clusters.iter().map(|cluster| i64::from(cluster.replicas)).sum()
}

/// A cluster in the queue for the next replica; the greatest gets it.
#[derive(Clone, Debug)]
struct WeightedCluster<'a> {
    name: &'a str,
    weight: i64,
    allocated: i32,
    is_reversed: bool,
}

impl WeightedCluster<'_> {
    fn priority(&self) -> f64 {
        self.priority_with(self.allocated)
    }

    /// Returns the priority that the cluster has with this number of replicas.
    #[expect(clippy::cast_precision_loss, reason = "Karmada compares 64 bit floats, and ties depend on it")]
    fn priority_with(&self, allocated: i32) -> f64 {
        self.weight as f64 / (2.0 * f64::from(allocated) + 1.0)
    }

    /// Returns the number of replicas that the cluster gets while its priority is above the threshold, at most `max`.
    fn replicas_above(&self, threshold: f64, max: i32) -> i32 {
        let (mut low, mut high) = (0, max);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.priority_with(self.allocated.saturating_add(middle)) > threshold {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        high
    }
}

impl Ord for WeightedCluster<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = if self.is_reversed { self.name.cmp(other.name) } else { other.name.cmp(self.name) };
        self.priority().total_cmp(&other.priority()).then(other.allocated.cmp(&self.allocated)).then(by_name)
    }
}

impl PartialOrd for WeightedCluster<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WeightedCluster<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for WeightedCluster<'_> {}

fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    fn weighted(weights: &[i64], allocated: &[i32]) -> Vec<WeightedCluster<'static>> {
        let of = |(name, (weight, allocated)): (&&'static str, (&i64, &i32))| WeightedCluster {
            name,
            weight: *weight,
            allocated: *allocated,
            is_reversed: false,
        };
        NAMES.iter().zip(weights.iter().zip(allocated)).map(of).collect()
    }

    fn allocated(mut clusters: Vec<WeightedCluster<'_>>) -> Vec<i32> {
        clusters.sort_by_key(|cluster| cluster.name);
        clusters.iter().map(|cluster| cluster.allocated).collect()
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
                let mut given = weighted(&weights, &initial);
                for cluster in &mut given {
                    cluster.is_reversed = reversed;
                }
                given
            };
            let mut fast = given();
            let left = allocate_in_bulk(&mut fast, replicas);
            prop_assert!(usize::try_from(left).unwrap() <= fast.len(), "{left} steps are left");
            let slow = allocate_one_by_one(given(), replicas);
            prop_assert_eq!(allocated(allocate_one_by_one(fast, left)), allocated(slow));
        }
    }

    #[test]
    fn largest_number_of_replicas_needs_few_steps() {
        for weights in [&[1][..], &[3, 2, 1], &[1, 1, 1, 1, 1, 1], &[i64::MAX, 1, 0]] {
            let mut clusters = weighted(weights, &[0; 6]);
            let left = allocate_in_bulk(&mut clusters, i32::MAX);
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
