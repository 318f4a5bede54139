//! The revisions of a Deployment, which `kubectl rollout history` and `undo` go by: reads its sets, writes what they are numbered.
//!
//! Upstream: `SetNewReplicaSetAnnotations` of `pkg/controller/deployment/util/deployment_util.go`.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::workloads::{Workloads, unless_outdated};

/// The number of a template: the newest one has the highest.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that a template had before it was the newest again.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// What a set does not have from its deployment.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];

/// The number that the set of the template has, or is to have: more than all others.
pub(super) fn due(current: Option<&ReplicaSet>, old: &[&ReplicaSet]) -> i64 {
    let next = old.iter().map(|set| known(*set)).max().unwrap_or(0) + 1;
    current.map_or(0, known).max(next)
}

fn known(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What a set with this number is to be annotated with.
pub(super) fn annotations(deployment: &Deployment, set: &ReplicaSet, revision: i64) -> BTreeMap<String, String> {
    let mut all = set.annotations().clone();
    let before = known(set);
    if before > 0 && before < revision {
        let history = all.entry(HISTORY.into()).or_default();
        let comma = if history.is_empty() { "" } else { "," };
        *history = format!("{history}{comma}{before}");
    }
    let shared = deployment.annotations().iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    all.extend(shared.map(|(name, value)| (name.clone(), value.clone())));
    all.insert(REVISION.into(), revision.to_string());
    all
}

/// Writes the number to the set and to its deployment, where it is another one. Returns how much it wrote.
pub(super) async fn tell(
    workloads: &Workloads,
    deployment: &Deployment,
    set: &ReplicaSet,
    revision: i64,
) -> kube::Result<usize> {
    let namespace = deployment.namespace().unwrap_or_default();
    let (mut n_writes, with) = (0, PatchParams::default());
    let wanted = annotations(deployment, set, revision);
    if wanted != *set.annotations() {
        let api = Api::<ReplicaSet>::namespaced(workloads.client.clone(), &namespace);
        let patch = Patch::Merge(json!({ "metadata": { "annotations": wanted } }));
        unless_outdated(api.patch(&set.name_any(), &with, &patch).await)?;
        n_writes += 1;
    }
    let revision = revision.to_string();
    if deployment.annotations().get(REVISION) != Some(&revision) {
        let api = Api::<Deployment>::namespaced(workloads.client.clone(), &namespace);
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { REVISION: revision } } }));
        unless_outdated(api.patch(&deployment.name_any(), &with, &patch).await)?;
        n_writes += 1;
    }
    Ok(n_writes)
}
