//! Scales a Deployment during a rollout: each set gets its share of the difference
//! (`pkg/controller/deployment/sync.go`).
//!
//! Without this, a Deployment that is scaled during a rollout would give all new Pods to one
//! template, and a faulty one could get them all.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt;

use super::{Rollout, available, bounds, replicas};

impl<'a> Rollout<'a> {
    /// Iterates over the sets with replicas.
    fn active(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.sets().filter(|set| replicas(set) > 0)
    }

    /// Returns `true` if a set was scaled for another size of the Deployment.
    ///
    /// The annotation has the size for which a set was scaled last. Sets without it, made by hand,
    /// are not compared.
    pub(super) fn is_resized(&self) -> bool {
        self.active()
            .filter_map(|set| annotated_number(set, bounds::DESIRED))
            .any(|desired| desired != self.bounds.replicas)
    }

    /// Scales the sets to the new size, without advancing the rollout.
    ///
    /// | sets with replicas | done |
    /// |---|---|
    /// | one | it gets all replicas |
    /// | none | the current set, or the newest old one, gets all replicas |
    /// | several, and the current one is complete | old sets are scaled to 0 |
    /// | several | see `share`; nothing with `Recreate` |
    pub(super) async fn resize(&self) -> kube::Result<usize> {
        let active: Vec<_> = self.active().collect();
        if let [only] = active[..] {
            return self.scale(only, self.bounds.replicas).await;
        }
        if active.is_empty() {
            let latest = self.current.or_else(|| self.old.last().copied());
            return match latest {
                Some(latest) => self.scale(latest, self.bounds.replicas).await,
                None => Ok(0),
            };
        }
        if self.current.is_some_and(|current| self.is_saturated(current)) {
            return self.scale_down_old().await;
        }
        if self.bounds.recreates { Ok(0) } else { self.share(active).await }
    }

    /// Returns `true` if a set has all Pods of the Deployment (`IsSaturated`).
    ///
    /// The set has been scaled for the present size, and all its Pods are available.
    fn is_saturated(&self, set: &ReplicaSet) -> bool {
        let all = self.bounds.replicas;
        annotated_number(set, bounds::DESIRED) == Some(all) && replicas(set) == all && available(set) == all
    }

    /// Distributes the difference in proportion to the sizes of the sets. The largest set gets the remainder.
    ///
    /// When scaling up, the newer of two sets of one size comes first; when scaling down, the older one. No set gets
    /// more than what is left, and none becomes negative. Annotations are written even if the size is unchanged, so
    /// that the resize counts as done.
    async fn share(&self, mut sets: Vec<&ReplicaSet>) -> kube::Result<usize> {
        let more = self.bounds.pods_max() - self.n_desired();
        if more > 0 {
            sets.sort_by_key(|set| Reverse((replicas(set), set.creation_timestamp())));
        } else {
            sets.sort_by_key(|set| (Reverse(replicas(set)), set.creation_timestamp()));
        }
        let mut given = 0;
        let mut sizes = Vec::new();
        for set in &sets {
            let left = more - given;
            let part = if more > 0 {
                self.proportional_change(set).min(left)
            } else {
                self.proportional_change(set).max(left)
            };
            let part = if more == 0 { 0 } else { part };
            sizes.push(replicas(set) + part);
            given += part;
        }
        if let Some(largest) = sizes.first_mut() {
            *largest = (*largest + more - given).max(0);
        }
        let mut n_writes = 0;
        for (set, size) in sets.into_iter().zip(sizes) {
            let is_annotated =
                self.bounds.annotations().iter().all(|(name, text)| set.annotations().get(name) == Some(text));
            if size != replicas(set) || !is_annotated {
                n_writes += self.write_scale(set, size).await?;
            }
        }
        Ok(n_writes)
    }

    /// Returns the change of a set that keeps its share (`getReplicaSetFraction`).
    ///
    /// The previous size is read from the annotation of the set, or from the Deployment's status if it is missing or 0.
    fn proportional_change(&self, set: &ReplicaSet) -> i32 {
        let has = replicas(set);
        if self.bounds.replicas == 0 {
            return -has;
        }
        let known = self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        let before = annotated_number(set, bounds::MAX_REPLICAS).filter(|most| *most != 0).unwrap_or(known).max(1);
        let (scaled, before) = (i64::from(has) * i64::from(self.bounds.pods_max()), i64::from(before));
        // Rounds to the nearest number, halves up.
        let size = (2 * scaled + before) / (2 * before);
        i32::try_from(size).unwrap_or(i32::MAX) - has
    }
}

/// Returns the number in an annotation.
///
/// `None` if it is absent or not a number.
fn annotated_number(set: &ReplicaSet, annotation: &str) -> Option<i32> {
    set.annotations().get(annotation)?.parse().ok()
}
