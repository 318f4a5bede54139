//! The controller `scheduler`: chooses the clusters of a binding, and divides its replicas.
//!
//! It divides replicas as Karmada's scheduler does, with `kctl_interpreter::division`.

use std::collections::BTreeSet;

use kctl::prelude::*;
use kctl_interpreter::division::{Candidate, Mode, StaticWeight, Strategy, TargetCluster, assign};
use serde_json::json;

use crate::{
    kinds::{
        BindingCluster, DividedBy, Division, MemberCluster, Placement, ResourceBinding, ResourceBindingSpec, Weight,
    },
    members::{all, is_leaving},
};

/// Divides the replicas of a binding.
///
/// An unreachable cluster remains a candidate for objects that it already has, without room for further replicas. Only
/// `Room` and `FewClusters` consider room. A leaving cluster loses all of its replicas.
#[controller(
    watches = MemberCluster(map = all::<ResourceBinding>),
    primary(patch, when = generation_changed),
    // Capacity that another binding frees does not enqueue this binding, so failed bindings are retried.
    backoff("1s", max = "30s"),
    name = "scheduler"
)]
pub(crate) async fn scheduler(binding: Arc<ResourceBinding>, cx: Context<scheduler>) -> Result<Action> {
    let mut members: Vec<_> = cx.store::<MemberCluster>().iter().filter(|member| !is_leaving(member)).collect();
    members.sort_by_key(|member| member.name_any());
    let bindings = cx.store::<ResourceBinding>();
    let members: Vec<_> = members.iter().map(|member| Member::of(member, &bindings)).collect();
    let clusters = schedule(&binding.spec, &members, &binding.uid().unwrap_or_default())
        .inspect_err(|error| cx.event(Warning, "NotScheduled", error.to_string()))?;
    if clusters != binding.spec.clusters {
        if clusters.is_empty() {
            cx.event(Warning, "NotScheduled", "no registered cluster matches the placement");
        } else {
            cx.event(Normal, "Scheduled", clusters.iter().map(format_cluster).collect::<Vec<_>>().join(", "));
        }
        cx.patch(json!({ "spec": { "clusters": clusters } })).await?;
    }
    Ok(Action::await_change())
}

/// Formats a cluster with its replicas, for events.
fn format_cluster(cluster: &BindingCluster) -> String {
    let share = cluster.replicas.map_or_else(String::new, |replicas| format!(": {replicas}"));
    format!("{}{share}", cluster.name)
}

/// The properties of a member that scheduling depends on.
struct Member {
    name: String,
    /// `true` if the member is ready.
    is_ready: bool,
    /// Number of additional replicas that fit, or 0 if the member is not ready.
    room: i32,
}

impl Member {
    /// Computes the properties of a member. Its room is its capacity minus the replicas of all bindings.
    fn of(member: &MemberCluster, bindings: &Store<ResourceBinding>) -> Self {
        let name = member.name_any();
        let is_ready = member.status.as_ref().is_some_and(|status| status.ready);
        let room = match member.spec.capacity {
            _ if !is_ready => 0,
            Some(capacity) => capacity.saturating_sub(assigned_replicas(&name, bindings)).max(0),
            None => i32::MAX,
        };
        Self { name, is_ready, room }
    }
}

/// Returns the number of replicas that all bindings have on a cluster.
fn assigned_replicas(cluster: &str, bindings: &Store<ResourceBinding>) -> i32 {
    let replicas = |binding: Arc<ResourceBinding>| {
        let has = binding.spec.clusters.iter().filter(|share| share.name == cluster);
        has.filter_map(|share| share.replicas).fold(0i32, i32::saturating_add)
    };
    bindings.iter().map(replicas).fold(0, i32::saturating_add)
}

/// Returns the clusters of a binding with their replicas, sorted by name. They are the clusters of its placement, and
/// the clusters of bindings that depend on its object.
///
/// # Errors
/// The candidate clusters have no room for the replicas.
fn schedule(spec: &ResourceBindingSpec, members: &[Member], uid: &str) -> Result<Vec<BindingCluster>> {
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

/// Returns the clusters that the policy's placement selects. Objects without replicas go to all candidates.
fn by_placement(
    spec: &ResourceBindingSpec,
    placement: &Placement,
    members: &[Member],
    uid: &str,
) -> Result<Vec<BindingCluster>> {
    let has = |name: &str| spec.clusters.iter().any(|cluster| cluster.name == name);
    let wanted = |name: &String| placement.clusters.is_empty() || placement.clusters.contains(name);
    let candidates: Vec<_> = members
        .iter()
        .filter(|member| wanted(&member.name) && (member.is_ready || has(&member.name)))
        .map(|member| Candidate { name: member.name.clone(), available: member.room })
        .collect();
    let Some(replicas) = spec.replicas else {
        let everywhere =
            candidates.into_iter().map(|candidate| BindingCluster { name: candidate.name, replicas: None });
        return Ok(everywhere.collect());
    };
    let previous: Vec<_> = spec
        .clusters
        .iter()
        .map(|cluster| TargetCluster { name: cluster.name.clone(), replicas: cluster.replicas.unwrap_or(0) })
        .collect();
    let divided = assign(&strategy(placement, replicas), Mode::Steady, replicas, &candidates, &previous, uid)?;
    // A cluster without replicas does not need the object.
    let with_some = divided.into_iter().filter(|cluster| cluster.replicas > 0 || replicas == 0);
    Ok(with_some.map(|cluster| BindingCluster { name: cluster.name, replicas: Some(cluster.replicas) }).collect())
}

/// Returns Karmada's strategy for a placement.
fn strategy(placement: &Placement, replicas: i32) -> Strategy {
    match (&placement.replicas, &placement.divided_by) {
        // Zero replicas fit everywhere.
        (Division::Divided, DividedBy::Room | DividedBy::FewClusters) if replicas == 0 => Strategy::Duplicated,
        (Division::Duplicated, _) => Strategy::Duplicated,
        (Division::Divided, DividedBy::Room) => Strategy::DynamicWeight,
        (Division::Divided, DividedBy::FewClusters) => Strategy::Aggregated,
        (Division::Divided, DividedBy::Weight) => {
            let weight =
                |rule: &Weight| StaticWeight { clusters: BTreeSet::from([rule.cluster.clone()]), weight: rule.weight };
            Strategy::StaticWeight(placement.weights.iter().map(weight).collect())
        }
    }
}
