//! The revisions of a Deployment, which its sets carry: what `kubectl rollout history` and `undo` go by.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;

use super::bounds;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The revisions that a set has had before.
const BEFORE: &str = "deployment.kubernetes.io/revision-history";
/// Of the Deployment alone (`annotationsToSkip` upstream).
const OWN: [&str; 5] =
    [REVISION, BEFORE, "kubectl.kubernetes.io/last-applied-configuration", bounds::DESIRED, bounds::MOST];

/// The revision of a set or a Deployment; 0 where it has none.
pub(super) fn of(object: &impl ResourceExt) -> i64 {
    object.annotations().get(REVISION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// Newer than the revisions of all old sets.
fn next(old: &[&ReplicaSet]) -> i64 {
    old.iter().map(|set| of(*set)).max().unwrap_or(0) + 1
}

/// The revision of the current set, once it says so.
pub(super) fn current(current: Option<&ReplicaSet>, old: &[&ReplicaSet]) -> i64 {
    current.map_or(0, of).max(next(old))
}

/// What the set of the template says: the annotations of the Deployment, and its revision.
pub(super) fn annotations(
    deployment: &Deployment,
    set: Option<&ReplicaSet>,
    old: &[&ReplicaSet],
) -> BTreeMap<String, String> {
    let shared = deployment.annotations().iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    let mut said: BTreeMap<_, _> = shared.map(|(name, value)| (name.clone(), value.clone())).collect();
    let revision = current(set, old);
    said.insert(REVISION.into(), revision.to_string());
    // A set that was there before has come back.
    if let Some(set) = set.filter(|set| (1..revision).contains(&of(*set))) {
        let before = set.annotations().get(BEFORE).map(|before| format!("{before},")).unwrap_or_default();
        said.insert(BEFORE.into(), format!("{before}{}", of(set)));
    }
    said
}
