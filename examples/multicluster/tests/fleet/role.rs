//! Tests that the roles on all three clusters contain exactly the permissions that the program needs.

use kctl::{
    json,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams},
    },
    prelude::*,
    testing::Trial,
};
use multicluster::{MemberCluster, PropagationPolicy};

use crate::{
    cluster::REAL,
    world::{FLEET, apply},
};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: { name: job, labels: { team: a } }\nspec: { containers: [{ name: job, image: job }], terminationGracePeriodSeconds: 1 }";
const POLICY: &str = "apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: job }\nspec: { resourceSelectors: [{ apiVersion: v1, kind: Pod }] }";
const ELSEWHERE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }";

/// Shortens the termination grace period of the pods, because pods on real servers take all of it.
fn ends_soon(yaml: &str) -> String {
    let (from, to) = ("      containers:\n", "      terminationGracePeriodSeconds: 1\n      containers:\n");
    assert!(yaml.contains(from), "there is a template of pods");
    yaml.replace(from, to)
}

/// Creates, changes and deletes an object of every kind on both members.
async fn exercise_all_permissions(trial: &Trial) -> Result<()> {
    let home = trial.client();
    apply(&home, &ends_soon(FLEET)).await;
    apply(&home, POD).await;
    apply(&home, POLICY).await;
    trial.idle().await?;
    let members: Vec<Client> = ["member1", "member2"].into_iter().filter_map(|name| trial.cluster(name)).collect();
    for member in &members {
        let deployment = Api::<Deployment>::default_namespaced(member.clone()).get("web").await?;
        assert!(deployment.status.is_some_and(|status| status.ready_replicas > Some(0)));
    }
    let template_status = Api::<Deployment>::default_namespaced(home.clone()).get("web").await?.status;
    assert_eq!(template_status.and_then(|status| status.ready_replicas), Some(10));

    let change = Patch::Merge(json!({ "metadata": { "labels": { "changed": "yes" } } }));
    let with = PatchParams::default();
    Api::<Deployment>::default_namespaced(home.clone()).patch("web", &with, &change).await?;
    Api::<Service>::default_namespaced(home.clone()).patch("web", &with, &change).await?;
    Api::<ConfigMap>::default_namespaced(home.clone()).patch("web-settings", &with, &change).await?;
    Api::<Secret>::default_namespaced(home.clone()).patch("web-password", &with, &change).await?;
    Api::<Pod>::default_namespaced(home.clone()).patch("job", &with, &change).await?;
    trial.idle().await?;
    let open = Patch::Merge(json!({ "spec": { "type": "LoadBalancer" } }));
    Api::<Service>::default_namespaced(home.clone()).patch("web", &with, &open).await?;
    trial.idle().await?;
    for (member, address) in members.iter().zip(["192.0.2.1", "192.0.2.2"]) {
        let address = Patch::Merge(json!({ "status": { "loadBalancer": { "ingress": [{ "ip": address }] } } }));
        Api::<Service>::default_namespaced(member.clone()).patch_status("web", &with, &address).await?;
    }
    trial.idle().await?;
    let ingress_status =
        Api::<Service>::default_namespaced(home.clone()).get("web").await?.status.and_then(|s| s.load_balancer);
    assert_eq!(
        ingress_status.and_then(|ingress_status| ingress_status.ingress).map_or(0, |addresses| addresses.len()),
        2
    );
    // Without `member1` in the placement, its works are deleted.
    let one = Patch::Merge(json!({ "spec": { "placement": { "weights": [{ "cluster": "member2", "weight": 1 }] } } }));
    Api::<PropagationPolicy>::default_namespaced(home.clone()).patch("web", &with, &one).await?;
    trial.idle().await?;
    apply(&home, ELSEWHERE).await;
    let prices = kctl::from_yaml("{ metadata: { name: prices } }")?;
    Api::<ConfigMap>::namespaced(home.clone(), "shop").create(&kctl::kube::api::PostParams::default(), &prices).await?;
    let all = kctl::from_yaml(
        "{ metadata: { name: all }, spec: { resourceSelectors: [{ apiVersion: v1, kind: ConfigMap }] } }",
    )?;
    let policies = Api::<PropagationPolicy>::namespaced(home.clone(), "shop");
    policies.create(&kctl::kube::api::PostParams::default(), &all).await?;
    trial.idle().await?;

    let own = Api::<PropagationPolicy>::default_namespaced(home.clone());
    own.delete("web", &DeleteParams::default()).await?;
    own.delete("job", &DeleteParams::default()).await?;
    trial.idle().await?;
    for member in &members {
        no_pods_are_left(&Api::default_namespaced(member.clone())).await?;
    }
    // A member leaves the fleet: the finalizer of its Cluster checks for remaining works.
    policies.delete("all", &DeleteParams::default()).await?;
    trial.idle().await?;
    Api::<MemberCluster>::all(home).delete("member1", &DeleteParams::default()).await?;
    trial.idle().await
}

/// Waits until a member's garbage collector has deleted all Pods.
async fn no_pods_are_left(pods: &Api<Pod>) -> Result<()> {
    let mut n_left = 0;
    for _ in 0..60 {
        n_left = pods.list(&ListParams::default()).await?.items.len();
        if n_left == 0 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    Err(format!("{n_left} pods are left").into())
}

#[tokio::test(start_paused = true)]
async fn roles_are_exactly_what_is_needed() {
    kctl::testing::check_role(multicluster::app, exercise_all_permissions).await.unwrap();
}

/// `KUBECONFIG_MEMBER1` and `KUBECONFIG_MEMBER2` name the members.
#[tokio::test]
#[ignore = "needs KUBECONFIG and two members: cargo xtask roles"]
async fn role_is_minimal_on_a_real_server() {
    let _alone = REAL.lock().await;
    kctl::testing::check_whole_role_on_cluster(multicluster::app, exercise_all_permissions).await.unwrap();
}
