//! The strategies of a placement: compute the replicas of each candidate cluster from the last division.
//!
//! The sources are `assignByDuplicatedStrategy`, `assignByStaticWeightStrategy` and `assignByDynamicStrategy` in Karmada's
//! `pkg/scheduler/core/assignment.go`, and `dynamicScaleUp`, `dynamicScaleDown` and `dynamicFreshScale` in its
//! `pkg/scheduler/core/division_algorithm.go`.

use std::collections::{BTreeMap, BTreeSet};

use super::{TargetCluster, divide, webster::total_replicas};

/// A cluster that can get replicas: one that passed the filters of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The name of the cluster.
    pub name: String,
    /// The number of additional replicas that fit into the cluster. Strategies with fixed weights ignore it.
    pub available: i32,
}

/// A fixed weight for some clusters (`staticWeightList` of a `PropagationPolicy`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticWeight {
    /// The names of the clusters.
    pub clusters: BTreeSet<String>,
    /// The weight, relative to the weights of other clusters. 0 counts as no weight.
    pub weight: i64,
}

/// The replica scheduling strategy of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Every cluster gets the full number of replicas.
    Duplicated,
    /// Divides by fixed weights. The largest weight of a cluster counts. A cluster without a weight is left out of the result;
    /// if no cluster has a weight, all have the same.
    StaticWeight(Vec<StaticWeight>),
    /// Divides in proportion to the free capacity of the clusters.
    DynamicWeight,
    /// Divides over as few clusters as are needed, taking the clusters with the most capacity first. When replicas are
    /// added, clusters that already have some are taken before all others.
    Aggregated,
}

/// Selects if a division starts from the last one. Only [`Strategy::DynamicWeight`] and [`Strategy::Aggregated`] use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Adds or removes only the difference to the last division, so that few replicas move.
    Steady,
    /// Divides all replicas again. Replicas that a cluster already has count as its free capacity.
    Fresh,
}

/// The error of [`assign`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DivisionError {
    /// The clusters have too little capacity: wait, add clusters or request fewer replicas. The message is Karmada's.
    #[error("failed to {step}: Clusters available replicas {available} are not enough to schedule.")]
    #[non_exhaustive]
    NotEnough {
        /// The step that failed, such as `scale up`.
        step: &'static str,
        /// The capacity of all clusters together.
        available: i32,
    },
}

/// Divides the replicas of an object over candidate clusters.
///
/// `previous` is the last division; replicas of clusters that are no longer candidates are divided again. `uid` is the UID of
/// the object, which decides ties (see [`divide`]).
///
/// ```
/// use kctl_interpreter::division::{Candidate, Mode, StaticWeight, Strategy, assign};
///
/// let candidates = ["a", "b"].map(|name| Candidate { name: name.into(), available: 0 });
/// let weight = |name: &str, weight| StaticWeight { clusters: [name.to_owned()].into(), weight };
/// let strategy = Strategy::StaticWeight(vec![weight("a", 1), weight("b", 2)]);
/// let divided = assign(&strategy, Mode::Steady, 9, &candidates, &[], "uid")?;
/// assert_eq!(divided.iter().map(|cluster| cluster.replicas).collect::<Vec<_>>(), [3, 6]);
/// # Ok::<_, kctl_interpreter::division::DivisionError>(())
/// ```
///
/// # Errors
/// [`DivisionError::NotEnough`] if the candidates have too little capacity. [`Strategy::Duplicated`] and
/// [`Strategy::StaticWeight`] never fail.
pub fn assign(
    strategy: &Strategy,
    mode: Mode,
    replicas: i32,
    candidates: &[Candidate],
    previous: &[TargetCluster],
    uid: &str,
) -> Result<Vec<TargetCluster>, DivisionError> {
    match strategy {
        Strategy::Duplicated => {
            let each = |candidate: &Candidate| TargetCluster { name: candidate.name.clone(), replicas };
            Ok(candidates.iter().map(each).collect())
        }
        Strategy::StaticWeight(rules) => {
            Ok(divide(replicas, &static_weights(rules, candidates), &BTreeMap::new(), uid))
        }
        Strategy::DynamicWeight => by_available_replicas(Spread::Wide, mode, replicas, candidates, previous, uid),
        Strategy::Aggregated => by_available_replicas(Spread::Narrow, mode, replicas, candidates, previous, uid),
    }
}

fn static_weights(rules: &[StaticWeight], candidates: &[Candidate]) -> BTreeMap<String, i64> {
    let weight = |name: &String| {
        let matching = rules.iter().filter(|rule| rule.clusters.contains(name));
        matching.map(|rule| rule.weight).max().unwrap_or_default()
    };
    let weighed = candidates.iter().map(|candidate| (candidate.name.clone(), weight(&candidate.name)));
    let weights: BTreeMap<_, _> = weighed.filter(|(_, weight)| *weight > 0).collect();
    if weights.is_empty() {
        return candidates.iter().map(|candidate| (candidate.name.clone(), 1)).collect();
    }
    weights
}

/// The number of clusters over which a dynamic division spreads the replicas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// All candidates: [`Strategy::DynamicWeight`].
    Wide,
    /// The first clusters that have capacity for all replicas: [`Strategy::Aggregated`].
    Narrow,
}

fn by_available_replicas(
    spread: Spread,
    mode: Mode,
    replicas: i32,
    candidates: &[Candidate],
    previous: &[TargetCluster],
    uid: &str,
) -> Result<Vec<TargetCluster>, DivisionError> {
    // Replicas on clusters that are no longer candidates are divided again.
    let is_candidate = |cluster: &&TargetCluster| candidates.iter().any(|candidate| candidate.name == cluster.name);
    let scheduled: Vec<_> = previous.iter().filter(is_candidate).cloned().collect();
    let assigned = scheduled.iter().fold(0i32, |sum, cluster| sum.saturating_add(cluster.replicas));
    let had = |name: &str| scheduled.iter().find(|cluster| cluster.name == name).map_or(0, |cluster| cluster.replicas);
    let capacity = |plus: &dyn Fn(&str) -> i32| -> Vec<TargetCluster> {
        let with_capacity = |candidate: &Candidate| TargetCluster {
            name: candidate.name.clone(),
            replicas: candidate.available.saturating_add(plus(&candidate.name)),
        };
        candidates.iter().map(with_capacity).collect()
    };
    let none: [TargetCluster; 0] = [];
    let share =
        |step, replicas, capacity, scheduled| DynamicDivision { step, spread, replicas, capacity, scheduled, uid };
    if mode == Mode::Fresh {
        return share("do fresh scale", replicas, capacity(&had), &none).divide();
    }
    match assigned.cmp(&replicas) {
        std::cmp::Ordering::Equal => Ok(scheduled),
        std::cmp::Ordering::Greater => share("scale down", replicas, scheduled.clone(), &none).divide(),
        std::cmp::Ordering::Less => {
            share("scale up", replicas.saturating_sub(assigned), capacity(&|_| 0), &scheduled).divide()
        }
    }
}

/// One division of replicas by the capacity that each cluster has.
struct DynamicDivision<'a> {
    step: &'static str,
    spread: Spread,
    replicas: i32,
    /// The capacity of each cluster: its weight.
    capacity: Vec<TargetCluster>,
    /// Replicas that clusters have already and keep.
    scheduled: &'a [TargetCluster],
    uid: &'a str,
}

impl DynamicDivision<'_> {
    fn divide(mut self) -> Result<Vec<TargetCluster>, DivisionError> {
        let available = self.capacity.iter().fold(0i32, |sum, cluster| sum.saturating_add(cluster.replicas));
        if available < self.replicas {
            return Err(DivisionError::NotEnough { step: self.step, available });
        }
        self.capacity.sort_by_key(|cluster| std::cmp::Reverse(cluster.replicas));
        if self.spread == Spread::Narrow {
            self.keep_largest_clusters();
        }
        let weights = self.capacity.iter().map(|cluster| (cluster.name.clone(), i64::from(cluster.replicas)));
        let added = divide(self.replicas, &weights.collect(), &BTreeMap::new(), self.uid);
        debug_assert_eq!(
            total_replicas(&added),
            i64::from(self.replicas.max(0)),
            "clusters with capacity get all replicas"
        );
        Ok(merge_target_clusters(self.scheduled, added))
    }

    /// Keeps as many clusters as are needed for the replicas: first those that already have some, then the largest.
    fn keep_largest_clusters(&mut self) {
        let has = |name: &str| self.scheduled.iter().any(|cluster| cluster.name == name && cluster.replicas > 0);
        self.capacity.sort_by_key(|cluster| !has(&cluster.name));
        let mut sum = 0i32;
        let enough = self.capacity.iter().position(|cluster| {
            sum = sum.saturating_add(cluster.replicas);
            sum >= self.replicas
        });
        debug_assert!(
            enough.is_some() || self.capacity.is_empty(),
            "all clusters together have capacity for the replicas"
        );
        if let Some(last) = enough {
            self.capacity.truncate(last + 1);
        }
    }
}

/// Adds new replicas to those that clusters have. Clusters with new replicas come first, then the others by name.
fn merge_target_clusters(scheduled: &[TargetCluster], added: Vec<TargetCluster>) -> Vec<TargetCluster> {
    let mut unchanged: BTreeMap<_, _> =
        scheduled.iter().map(|cluster| (cluster.name.as_str(), cluster.replicas)).collect();
    let mut merged = added;
    for cluster in &mut merged {
        let kept = unchanged.remove(cluster.name.as_str()).unwrap_or_default();
        // A previous division may have negative numbers, since no schema rejects them.
        cluster.replicas = cluster.replicas.saturating_add(kept);
    }
    merged.extend(unchanged.into_iter().map(|(name, replicas)| TargetCluster { name: name.to_owned(), replicas }));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(pairs: &[(&str, i32)]) -> Vec<TargetCluster> {
        pairs.iter().map(|(name, replicas)| TargetCluster { name: (*name).to_owned(), replicas: *replicas }).collect()
    }

    fn candidates(pairs: &[(&str, i32)]) -> Vec<Candidate> {
        pairs.iter().map(|(name, available)| Candidate { name: (*name).to_owned(), available: *available }).collect()
    }

    fn rule(clusters: &[&str], weight: i64) -> StaticWeight {
        StaticWeight { clusters: clusters.iter().map(|name| (*name).to_owned()).collect(), weight }
    }

    /// `previous` and `expected` are pairs of name and replicas.
    fn check(
        strategy: &Strategy,
        mode: Mode,
        replicas: i32,
        capacity: &[(&str, i32)],
        previous: &[(&str, i32)],
        expected: &[(&str, i32)],
    ) {
        let answer = assign(strategy, mode, replicas, &candidates(capacity), &clusters(previous), "");
        let case = format!("{strategy:?} {mode:?} {replicas} over {capacity:?} after {previous:?}");
        assert_eq!(answer, Ok(clusters(expected)), "{case}");
    }

    #[test]
    fn duplicated_strategy_gives_each_cluster_all_replicas() {
        check(&Strategy::Duplicated, Mode::Steady, 3, &[("b", 0), ("a", 0)], &[("a", 1)], &[("b", 3), ("a", 3)]);
    }

    #[test]
    fn largest_weight_counts_and_unweighted_clusters_are_excluded() {
        let rules = vec![rule(&["a", "b"], 1), rule(&["b"], 2), rule(&["c"], 0)];
        let capacity = [("a", 0), ("b", 0), ("c", 0), ("d", 0)];
        check(&Strategy::StaticWeight(rules), Mode::Steady, 9, &capacity, &[], &[("a", 3), ("b", 6)]);
    }

    #[test]
    fn static_weight_without_matching_rule_divides_equally() {
        let strategy = Strategy::StaticWeight(vec![rule(&["x"], 5)]);
        check(&strategy, Mode::Steady, 4, &[("a", 0), ("b", 0)], &[], &[("a", 2), ("b", 2)]);
    }

    #[test]
    fn no_replicas_need_no_cluster() {
        for strategy in [Strategy::Duplicated, Strategy::DynamicWeight, Strategy::Aggregated] {
            for mode in [Mode::Steady, Mode::Fresh] {
                check(&strategy, mode, 0, &[], &[("gone", 2)], &[]);
            }
        }
    }

    #[test]
    fn capacity_is_the_weight_of_a_dynamic_division() {
        check(
            &Strategy::DynamicWeight,
            Mode::Steady,
            12,
            &[("a", 18), ("b", 12), ("c", 6)],
            &[],
            &[("a", 6), ("b", 4), ("c", 2)],
        );
    }

    #[test]
    fn scaling_up_divides_only_the_difference() {
        let capacity = [("a", 0), ("b", 10)];
        check(&Strategy::DynamicWeight, Mode::Steady, 8, &capacity, &[("a", 4)], &[("a", 4), ("b", 4)]);
        check(&Strategy::DynamicWeight, Mode::Steady, 8, &[("b", 10)], &[("a", 4)], &[("b", 8)]);
    }

    #[test]
    fn scaling_down_keeps_the_shares() {
        let previous = [("a", 6), ("b", 4), ("c", 2)];
        check(
            &Strategy::DynamicWeight,
            Mode::Steady,
            6,
            &[("a", 0), ("b", 0), ("c", 0)],
            &previous,
            &[("a", 3), ("b", 2), ("c", 1)],
        );
    }

    #[test]
    fn negative_previous_replicas_do_not_overflow() {
        let previous = [("a", i32::MAX), ("b", -i32::MAX)];
        check(&Strategy::DynamicWeight, Mode::Steady, 5, &[("a", 5), ("b", 0)], &previous, &previous);
        let previous = clusters(&[("a", i32::MIN)]);
        let answer = assign(&Strategy::DynamicWeight, Mode::Steady, 1, &candidates(&[("a", 1)]), &previous, "");
        assert_eq!(answer, Err(DivisionError::NotEnough { step: "scale up", available: 1 }));
    }

    #[test]
    fn unchanged_number_of_replicas_keeps_the_division() {
        check(
            &Strategy::Aggregated,
            Mode::Steady,
            3,
            &[("a", 9), ("b", 0)],
            &[("b", 2), ("a", 1)],
            &[("b", 2), ("a", 1)],
        );
    }

    #[test]
    fn fresh_division_counts_own_replicas_as_capacity() {
        check(
            &Strategy::DynamicWeight,
            Mode::Fresh,
            4,
            &[("a", 0), ("b", 2)],
            &[("a", 2), ("b", 0)],
            &[("a", 2), ("b", 2)],
        );
    }

    #[test]
    fn aggregated_replicas_prefer_current_then_largest_clusters() {
        let capacity = [("a", 6), ("b", 12), ("c", 3)];
        check(&Strategy::Aggregated, Mode::Steady, 10, &capacity, &[], &[("b", 10)]);
        check(&Strategy::Aggregated, Mode::Steady, 15, &capacity, &[], &[("a", 5), ("b", 10)]);
        check(&Strategy::Aggregated, Mode::Steady, 4, &capacity, &[("c", 1)], &[("c", 4)]);
    }

    #[test]
    fn insufficient_capacity_is_an_error_with_numbers() {
        let strategies = [Strategy::DynamicWeight, Strategy::Aggregated];
        for strategy in strategies {
            let answer = assign(&strategy, Mode::Steady, 4, &candidates(&[("a", 1), ("b", 2)]), &[], "");
            let message = answer.map_err(|error| error.to_string());
            let expected = "failed to scale up: Clusters available replicas 3 are not enough to schedule.";
            assert_eq!(message, Err(expected.to_owned()));
            let answer = assign(&strategy, Mode::Steady, 3, &candidates(&[("a", 1), ("b", 2)]), &[], "");
            assert_eq!(answer, Ok(clusters(&[("a", 1), ("b", 2)])));
        }
    }
}
