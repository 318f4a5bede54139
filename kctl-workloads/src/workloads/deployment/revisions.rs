//! The revisions of a Deployment, which its `ReplicaSets` carry for `kubectl rollout history` and `undo`.
//!
//! The newest template has the highest number. A rollback by `kubectl rollout undo` makes an old template the present
//! one. Its set then gets the next number, and remembers the old one in a second annotation.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;

use super::bounds;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The annotation with earlier revisions of a set.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotations that are not copied from the Deployment to its sets (`annotationsToSkip` upstream).
const OWN: [&str; 5] = [
    REVISION,
    REVISION_HISTORY,
    "kubectl.kubernetes.io/last-applied-configuration",
    bounds::DESIRED,
    bounds::MAX_REPLICAS,
];

/// Returns the revision of a set or a Deployment; 0 without one.
pub(super) fn revision_of(object: &impl ResourceExt) -> i64 {
    object.annotations().get(REVISION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// Returns the revision after the revisions of the old sets.
///
/// It is 1 for the first template.
fn next(old: &[&ReplicaSet]) -> i64 {
    old.iter().map(|set| revision_of(*set)).max().unwrap_or(0) + 1
}

/// Returns the revision of the current set.
///
/// A set keeps its revision as long as it is higher than the revisions of all old sets.
pub(super) fn current(current: Option<&ReplicaSet>, old: &[&ReplicaSet]) -> i64 {
    current.map_or(0, revision_of).max(next(old))
}

/// Returns the annotations of the current set: the Deployment's, and its revision.
///
/// `set` is the current set, or `None` before it is created. `old` are the other sets.
pub(super) fn annotations(
    deployment: &Deployment,
    set: Option<&ReplicaSet>,
    old: &[&ReplicaSet],
) -> BTreeMap<String, String> {
    let shared = deployment.annotations().iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    let mut merged: BTreeMap<_, _> = shared.map(|(name, value)| (name.clone(), value.clone())).collect();
    let revision = current(set, old);
    merged.insert(REVISION.into(), revision.to_string());
    // A rollback: an older set is current again and gets a new revision.
    if let Some(set) = set.filter(|set| (1..revision).contains(&revision_of(*set))) {
        let before = set.annotations().get(REVISION_HISTORY).map(|before| format!("{before},")).unwrap_or_default();
        merged.insert(REVISION_HISTORY.into(), format!("{before}{}", revision_of(set)));
    }
    merged
}
