//! Bindings → their clusters: where an object goes, with how many of its replicas.

use std::collections::BTreeSet;

use kctl::{
    interpreter::division::{Candidate, Mode, StaticWeight, Strategy, TargetCluster, assign},
    prelude::*,
};
use serde_json::json;

use crate::{
    kinds::{BindingCluster, Division, MemberCluster, Placement, ResourceBinding, ResourceBindingSpec},
    members::is_leaving,
};

/// Divides the replicas of a binding. A cluster that is not there gets nothing that it does not have already, and one that leaves
/// the fleet keeps nothing.
#[controller(
    watches = MemberCluster(map = all_bindings),
    primary(patch, when = generation_changed),
    name = "scheduler"
)]
pub(crate) async fn scheduler(binding: Arc<ResourceBinding>, cx: Context<scheduler>) -> Result<Action> {
    let mut members: Vec<_> = cx.store::<MemberCluster>().iter().filter(|member| !is_leaving(member)).collect();
    members.sort_by_key(|member| member.name_any());
    let is_there = |member: &MemberCluster| member.status.as_ref().is_some_and(|status| status.ready);
    let members: Vec<_> = members.iter().map(|member| (member.name_any(), is_there(member))).collect();
    let clusters = schedule(&binding.spec, &members, &binding.uid().unwrap_or_default())?;
    if clusters != binding.spec.clusters {
        let said: Vec<_> = clusters.iter().map(|cluster| format!("{} {:?}", cluster.name, cluster.replicas)).collect();
        cx.event(Normal, "Scheduled", said.join(", "));
        cx.patch(json!({ "spec": { "clusters": clusters } })).await?;
    }
    Ok(Action::await_change())
}

/// The clusters by name, with their replicas. Members are given with whether they are there.
fn schedule(spec: &ResourceBindingSpec, members: &[(String, bool)], uid: &str) -> Result<Vec<BindingCluster>> {
    let mut clusters = match &spec.placement {
        Some(placement) => by_placement(spec, placement, members, uid)?,
        None => Vec::new(),
    };
    let required: BTreeSet<_> = spec.required_by.iter().flat_map(|by| by.clusters.iter().cloned()).collect();
    let missing = required.into_iter().filter(|name| clusters.iter().all(|cluster| cluster.name != *name));
    let missing: Vec<_> = missing.map(|name| BindingCluster { name, replicas: None }).collect();
    clusters.extend(missing);
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(clusters)
}

fn by_placement(
    spec: &ResourceBindingSpec,
    placement: &Placement,
    members: &[(String, bool)],
    uid: &str,
) -> Result<Vec<BindingCluster>> {
    let has = |name: &str| spec.clusters.iter().any(|cluster| cluster.name == name);
    let wanted = |name: &String| placement.clusters.is_empty() || placement.clusters.contains(name);
    let candidates: Vec<_> = members
        .iter()
        .filter(|(name, is_there)| wanted(name) && (*is_there || has(name)))
        .map(|(name, _)| Candidate { name: name.clone(), available: i32::MAX })
        .collect();
    let Some(replicas) = spec.replicas else {
        let everywhere =
            candidates.into_iter().map(|candidate| BindingCluster { name: candidate.name, replicas: None });
        return Ok(everywhere.collect());
    };
    let strategy = match placement.replicas {
        Division::Duplicated => Strategy::Duplicated,
        Division::Divided => Strategy::StaticWeight(
            placement
                .weights
                .iter()
                .map(|rule| StaticWeight { clusters: BTreeSet::from([rule.cluster.clone()]), weight: rule.weight })
                .collect(),
        ),
    };
    let previous: Vec<_> = spec
        .clusters
        .iter()
        .map(|cluster| TargetCluster { name: cluster.name.clone(), replicas: cluster.replicas.unwrap_or(0) })
        .collect();
    let divided = assign(&strategy, Mode::Steady, replicas, &candidates, &previous, uid)?;
    // A cluster without a replica has no use for the object.
    let with_some = divided.into_iter().filter(|cluster| cluster.replicas > 0 || replicas == 0);
    Ok(with_some.map(|cluster| BindingCluster { name: cluster.name, replicas: Some(cluster.replicas) }).collect())
}

fn all_bindings(_cluster: &MemberCluster, bindings: &Store<ResourceBinding>) -> Vec<Key<ResourceBinding>> {
    bindings.keys()
}
