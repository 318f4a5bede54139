//! Tests the flow on the real API servers that `KUBECONFIG`, `KUBECONFIG_MEMBER1` and `KUBECONFIG_MEMBER2` name.

use kctl::{
    apiserver::{Kubelet, Workloads},
    json,
    kube::{
        Api, Client, Config,
        api::{DeleteParams, ListParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
    prelude::*,
};
use multicluster::{MemberCluster, OverridePolicy, PropagationPolicy, Work};
use tokio::{sync::Mutex, task::JoinSet};

use crate::{
    kinds::{WORKLOAD, WORKLOADS, define, undefine, workloads},
    rules::customization_changes_the_division,
    world::{FLEET, Fleet},
};

async fn client(variable: &str) -> Client {
    let file = std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names an API server"));
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Serializes the tests that use the real API servers, because each test needs them as its own fleet.
pub(crate) static REAL: Mutex<()> = Mutex::const_new(());

/// Connects to the control plane and its members.
async fn clients() -> [Client; 3] {
    [client("KUBECONFIG").await, client("KUBECONFIG_MEMBER1").await, client("KUBECONFIG_MEMBER2").await]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG and two members: cargo xtask roles"]
async fn flow_on_real_api_servers() {
    let [home, first, second] = clients().await;
    let _alone = REAL.lock().await;
    let members = [first, second];
    let mut tasks = JoinSet::new();
    for member in &members {
        // The real members have no kubelet and no Deployment controller.
        tasks.spawn(Kubelet::new(member.clone(), "multicluster-test").run());
        tasks.spawn(Workloads::new(member.clone()).run());
    }
    let fleet = Fleet::on(home, members.clone(), members, tasks).await;
    fleet.apply(FLEET).await;
    fleet.until("the replicas are ready", async || fleet.ready("web").await == [Some(2), Some(8)]).await;
    fleet.until("the template says so", async || fleet.reported_replicas("web").await == Some(10)).await;
    fleet.until("the secret is there", async || fleet.have::<Secret>("web-password").await == [true; 2]).await;
    let weights = json!({ "spec": { "placement": { "weights": [
        { "cluster": "member1", "weight": 1 }, { "cluster": "member2", "weight": 1 },
    ] } } });
    fleet.patch::<PropagationPolicy>("web", weights).await;
    fleet.until("half and half", async || fleet.ready("web").await == [Some(5), Some(5)]).await;
    fleet.until("the template still counts ten", async || fleet.reported_replicas("web").await == Some(10)).await;

    // Installs a kind while the program runs.
    fleet.apply(WORKLOADS).await;
    for server in std::iter::once(&fleet.home).chain(&fleet.members) {
        define(server).await;
    }
    fleet.apply(WORKLOAD).await;
    let there = async |index: usize| workloads(&fleet.members[index]).get_opt("batch").await.unwrap().is_some();
    fleet.until("the custom object is there", async || there(0).await && there(1).await).await;
    customization_changes_the_division(&fleet).await;
    workloads(&fleet.home).delete("batch", &DeleteParams::default()).await.unwrap();
    fleet.until("the custom object is gone", async || !there(0).await && !there(1).await).await;
    fleet.delete::<PropagationPolicy>("workloads").await;
    for server in std::iter::once(&fleet.home).chain(&fleet.members) {
        undefine(server).await;
    }

    fleet.delete::<PropagationPolicy>("web").await;
    fleet.until("the deployments are gone", async || fleet.have::<Deployment>("web").await == [false; 2]).await;
    let works = fleet.api::<Work>();
    let left = async || works.list(&ListParams::default()).await.unwrap().items.len();
    fleet.until("no work is left", async || left().await == 0).await;
    fleet.delete::<OverridePolicy>("mirror").await;
    fleet.delete::<Deployment>("web").await;
    fleet.delete::<Service>("web").await;
    fleet.delete::<ConfigMap>("web-settings").await;
    fleet.delete::<Secret>("web-password").await;
    let clusters = Api::<MemberCluster>::all(fleet.home.clone());
    clusters.delete("member1", &DeleteParams::default()).await.unwrap();
    clusters.delete("member2", &DeleteParams::default()).await.unwrap();
    // Wait until the program has removed its finalizers. Otherwise they would block the next fleet forever.
    let known = async || clusters.list(&ListParams::default()).await.unwrap().items.len();
    fleet.until("no cluster is left", async || known().await == 0).await;
}
