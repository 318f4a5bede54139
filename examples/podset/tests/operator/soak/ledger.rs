//! Counts the Pods of each set from watch events, and reports at once if a set has too many.

use std::collections::{BTreeMap, BTreeSet};

use kctl::prelude::*;

/// Maximum number of violations to keep for the report.
const TOLD_MAX: usize = 20;

#[derive(Default)]
pub(crate) struct Ledger {
    sets: BTreeMap<String, Set>,
    /// The set and the name of each live pod, by uid.
    live: BTreeMap<String, (String, String)>,
    violations: Vec<String>,
    pub(crate) n_events: u64,
    /// Number of created pods that the watch has seen.
    pub(crate) n_pods: u64,
    /// Number of lists that replaced a broken watch. The ledger has missed the states in between.
    pub(crate) n_gaps: u64,
}

#[derive(Default)]
struct Set {
    /// `spec.replicas`.
    wanted: usize,
    /// Maximum number of Pods: `wanted`, or the larger previous size until the set has shrunk.
    allowed: usize,
    /// The uids of the live Pods.
    live: BTreeSet<String>,
    /// The uid of a Pod that was deleted, until its event arrives.
    leaving: Option<String>,
}

impl Set {
    /// Lowers `allowed` once the set has shrunk to its new size.
    fn follow(&mut self) {
        if self.live.len() <= self.wanted {
            self.allowed = self.wanted;
        }
    }
}

/// Returns `true` if a pod has not ended and is not being deleted.
fn is_live(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn owner(pod: &Pod) -> String {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    owner.map(|owner| owner.name.clone()).unwrap_or_default()
}

impl Ledger {
    /// Raises the wanted and the allowed number of Pods. Called before the request that scales the set up.
    pub(crate) fn grows(&mut self, name: &str, wanted: usize) {
        let set = self.sets.entry(name.into()).or_default();
        set.wanted = wanted;
        set.allowed = set.allowed.max(wanted);
    }

    /// Lowers the wanted number of Pods. Called after the request that scales the set down.
    pub(crate) fn has_to_shrink(&mut self, name: &str, wanted: usize) {
        let set = self.sets.entry(name.into()).or_default();
        set.wanted = wanted;
        set.follow();
    }

    /// Returns the name and the uid of a Pod to delete. The set is not at rest until the event of the deletion arrives.
    pub(crate) fn take_one(&mut self, name: &str) -> Option<(String, String)> {
        let set = self.sets.get_mut(name)?;
        set.leaving = set.live.first().cloned();
        let uid = set.leaving.clone()?;
        Some((self.live.get(&uid)?.1.clone(), uid))
    }

    /// Returns the wanted number of Pods if the set has exactly that many and no change is pending. Otherwise returns
    /// `None`.
    pub(crate) fn at_rest(&self, name: &str) -> Option<usize> {
        let set = self.sets.get(name)?;
        let rests = set.live.len() == set.wanted && set.allowed == set.wanted && set.leaving.is_none();
        rests.then_some(set.wanted)
    }

    pub(crate) fn all_rest(&self) -> bool {
        self.sets.keys().all(|name| self.at_rest(name).is_some())
    }

    /// Returns the wanted number of Pods of every set.
    pub(crate) fn desired_pods(&self) -> BTreeMap<String, usize> {
        self.sets.iter().map(|(name, set)| (name.clone(), set.wanted)).collect()
    }

    pub(crate) fn n_live(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Records a pod that was added or changed.
    pub(crate) fn sees(&mut self, pod: &Pod) {
        self.n_events += 1;
        let uid = pod.uid().unwrap_or_default();
        if !is_live(pod) {
            self.ends(&uid);
            return;
        }
        let name = owner(pod);
        if self.live.insert(uid.clone(), (name.clone(), pod.name_any())).is_some() {
            return;
        }
        self.n_pods += 1;
        let set = self.sets.entry(name.clone()).or_default();
        set.live.insert(uid);
        let (n_live, allowed) = (set.live.len(), set.allowed);
        set.follow();
        if n_live > allowed && self.violations.len() < TOLD_MAX {
            let (pod, version) = (pod.name_any(), pod.metadata.resource_version.as_deref().unwrap_or_default());
            self.violations
                .push(format!("set {name:?} has {n_live} pods where {allowed} are allowed, with {pod} at {version}"));
        }
    }

    /// Records the deletion of a pod.
    pub(crate) fn sees_deleted(&mut self, pod: &Pod) {
        self.n_events += 1;
        self.ends(&pod.uid().unwrap_or_default());
    }

    fn ends(&mut self, uid: &str) {
        let Some((name, _)) = self.live.remove(uid) else { return };
        let Some(set) = self.sets.get_mut(&name) else { return };
        set.live.remove(uid);
        if set.leaving.as_deref() == Some(uid) {
            set.leaving = None;
        }
        set.follow();
    }

    /// Replaces all known Pods with a complete list.
    pub(crate) fn sees_all(&mut self, pods: &[Pod]) {
        let present: BTreeSet<_> = pods.iter().filter(|pod| is_live(pod)).filter_map(ResourceExt::uid).collect();
        let gone: Vec<_> = self.live.keys().filter(|uid| !present.contains(*uid)).cloned().collect();
        for uid in gone {
            self.ends(&uid);
        }
        for pod in pods {
            self.sees(pod);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str) -> Pod {
        let owner = kctl::json!({
            "apiVersion": "apps.example.com/v1", "kind": "PodSet", "name": "a", "uid": "a", "controller": true,
        });
        let pod = kctl::json!({
            "metadata": { "name": uid, "uid": uid, "ownerReferences": [owner] },
        });
        kctl::from_json(pod).unwrap()
    }

    fn deleted_pod(uid: &str) -> Pod {
        let mut pod = pod(uid);
        pod.metadata.deletion_timestamp = Some(kctl::from_json(kctl::json!("2026-01-01T00:00:00Z")).unwrap());
        pod
    }

    #[test]
    fn surplus_pod_after_scale_down_is_reported() {
        let mut ledger = Ledger::default();
        ledger.grows("a", 2);
        for uid in ["1", "2"] {
            ledger.sees(&pod(uid));
        }
        assert_eq!(ledger.at_rest("a"), Some(2));
        ledger.has_to_shrink("a", 1);
        ledger.sees(&deleted_pod("1"));
        ledger.sees_deleted(&deleted_pod("1"));
        assert_eq!((ledger.at_rest("a"), ledger.violations()), (Some(1), &[][..]));
        ledger.sees(&pod("3"));
        assert_eq!(ledger.violations().len(), 1, "it had come down");
    }

    #[test]
    fn set_with_a_terminating_pod_is_not_settled() {
        let mut ledger = Ledger::default();
        ledger.grows("a", 1);
        ledger.sees(&pod("1"));
        assert_eq!(ledger.take_one("a"), Some(("1".into(), "1".into())));
        assert_eq!(ledger.at_rest("a"), None);
        ledger.sees_all(&[pod("2")]);
        assert_eq!((ledger.at_rest("a"), ledger.n_live()), (Some(1), 1));
    }
}
