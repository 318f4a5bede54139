//! Tests the flow in the simulator: crashes, lost responses and watches that miss states, on all three servers.

use kctl::{
    json,
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    prelude::*,
    testing::{Scenario, Snapshot},
};
use multicluster::{PropagationPolicy, ResourceBinding, Work};

use crate::world::{CLUSTERS, FLEET};

/// Few seeds here, because a run of the fleet takes ten CPU seconds; the nightly workflow runs 64.
#[kctl::test(seeds = 3)]
fn fleet_converges_whatever_fails(scenario: Scenario) -> Scenario {
    scenario
        .app(multicluster::app)
        .objects(FLEET)
        .invariant("no replica is promised twice", |snapshot| {
            // A binding has at most as many replicas as its template wants or wanted earlier.
            let promised = replicas_by_cluster(snapshot).into_iter().map(|(_, replicas)| replicas).sum::<i32>();
            if promised <= 10 { Ok(()) } else { Err(format!("{promised} replicas are promised")) }
        })
        .settled("each cluster of the binding has its work", |snapshot| {
            let clusters = replicas_by_cluster(snapshot);
            let has_work =
                |cluster: &str| snapshot.get::<Work>("default", &format!("deployment-web-{cluster}")).is_some();
            match clusters.iter().find(|(cluster, _)| !has_work(cluster)) {
                None if !clusters.is_empty() => Ok(()),
                missing => Err(format!("{clusters:?}: no work for {missing:?}")),
            }
        })
        .step("other weights", |client| async move {
            let weights = json!({ "spec": { "placement": { "weights": [
                { "cluster": "member1", "weight": 1 }, { "cluster": "member2", "weight": 1 },
            ] } } });
            let policies: Api<PropagationPolicy> = Api::default_namespaced(client);
            policies.patch("web", &PatchParams::default(), &Patch::Merge(weights)).await?;
            Ok(())
        })
        .step("one cluster only", |client| async move {
            let policies: Api<PropagationPolicy> = Api::default_namespaced(client);
            let one = json!({ "spec": { "placement": { "clusters": ["member2"] } } });
            policies.patch("web", &PatchParams::default(), &Patch::Merge(one)).await?;
            Ok(())
        })
}

/// Returns the clusters of the web server with their replicas.
fn replicas_by_cluster(snapshot: &Snapshot) -> Vec<(String, i32)> {
    let binding = snapshot.get::<ResourceBinding>("default", "deployment-web");
    let clusters = binding.into_iter().flat_map(|binding| binding.spec.clusters);
    clusters.map(|cluster| (cluster.name, cluster.replicas.unwrap_or_default())).collect()
}

const CLUSTER_NAMES: [&str; 2] = ["member1", "member2"];
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: note }\ndata: { text: hello }";
const NOTES: &str = "apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: notes }\nspec: { resourceSelectors: [{ apiVersion: v1, kind: ConfigMap, name: note }] }";

/// A single small object, so that more of the injected faults hit the steps of its distribution.
#[kctl::test(seeds = 4)]
fn object_reaches_the_members_despite_any_fault(scenario: Scenario) -> Scenario {
    scenario
        .app(multicluster::app)
        .objects(&[CLUSTERS, NOTE, NOTES].join("\n---\n"))
        .invariant("what a member has is what is wanted", |snapshot| {
            let wanted = snapshot.get::<ConfigMap>("default", "note").and_then(|note| note.data);
            let placed = CLUSTER_NAMES.map(|member| snapshot.on(member).get::<ConfigMap>("default", "note"));
            let differs = placed.into_iter().flatten().find(|placed| placed.data != wanted && wanted.is_some());
            differs.map_or(Ok(()), |placed| Err(format!("{:?} instead of {wanted:?}", placed.data)))
        })
        .settled("each member has it", |snapshot| {
            let missing = CLUSTER_NAMES.into_iter().find(|member| snapshot.on(member).all::<ConfigMap>().is_empty());
            if let Some(member) = missing {
                return Err(format!("{member} has it not"));
            }
            let works = snapshot.all::<Work>();
            let statuses = works.iter().filter_map(|work| work.status.as_ref());
            let n_applied = statuses.filter(|status| status.applied).count();
            if n_applied == 2 { Ok(()) } else { Err(format!("{n_applied} of {} works are applied", works.len())) }
        })
}
