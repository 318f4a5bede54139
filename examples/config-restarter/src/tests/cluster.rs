//! Tests the operator on the real API server that `KUBECONFIG` names.

use std::collections::BTreeSet;

use kctl::{
    apiserver::Kubelet,
    k8s::{api::events::v1::Event, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition},
    kube::{
        Api, Client, CustomResourceExt as _,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};

use super::{FlakyRegistry, config, is_ready, names, web};
use crate::{app, policy::RestartPolicy};

/// The app on a real cluster, in a separate namespace, and with pods that terminate within a second.
struct Cluster {
    client: Client,
    namespace: String,
    registry: Arc<FlakyRegistry>,
}

impl Cluster {
    /// Connects to the cluster of `KUBECONFIG`.
    async fn connect() -> Self {
        assert!(std::env::var_os("KUBECONFIG").is_some(), "KUBECONFIG names an API server");
        let client = Client::try_default().await.unwrap();
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        let definition = RestartPolicy::crd();
        let by = PatchParams::apply("config-restarter-test").force();
        definitions.patch(&definition.name_any(), &by, &Patch::Apply(&definition)).await.unwrap();
        let metadata = ObjectMeta { generate_name: Some("config-restarter-".into()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespace = Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap().name_any();
        let cluster = Self { client, namespace, registry: Arc::default() };
        cluster
            .until("the definition is served", async |cluster| {
                cluster.api::<RestartPolicy>().list(&ListParams::default()).await.is_ok()
            })
            .await;
        cluster
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kctl::kube::Resource<Scope = kctl::k8s::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn until(&self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        for _ in 0..600 {
            if holds(self).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let policy = self.api::<RestartPolicy>().get_opt("web").await;
        panic!("not within a minute: {what}: {policy:?}");
    }

    /// Waits until three pods are ready with this data, and returns their names.
    async fn wait_for_rollout(&self, hash_before: Option<&str>) -> (BTreeSet<String>, Option<String>) {
        self.until("three pods are ready with the newest data", async |cluster| {
            let status = cluster.api::<RestartPolicy>().get("web").await.unwrap().status.unwrap_or_default();
            status.registered_hash.is_some()
                && status.registered_hash.as_deref() != hash_before
                && (status.ready, status.updated) == (3, 3)
        })
        .await;
        let mut pods = self.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        assert_eq!(pods.iter().filter(|pod| is_ready(pod)).count(), 3);
        (names(&pods), self.api::<RestartPolicy>().get("web").await.unwrap().status.unwrap().registered_hash)
    }
}

#[tokio::test]
#[ignore = "needs KUBECONFIG: cargo xtask real-server"]
async fn operator_works_on_a_real_api_server() {
    let cluster = Cluster::connect().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let manager = app(cluster.registry.clone()).manager(cluster.client.clone()).await.unwrap();
    let running = tokio::spawn(manager.run(async move { drop(stopped.await) }));
    let kubelet = tokio::spawn(Kubelet::new(cluster.client.clone(), "node").run());

    cluster.api().create(&PostParams::default(), &config("web-config", "hello")).await.unwrap();
    let mut policy = web(3);
    policy.spec.template.spec.as_mut().unwrap().termination_grace_period_seconds = Some(1);
    cluster.api().create(&PostParams::default(), &policy).await.unwrap();
    let (before, hash) = cluster.wait_for_rollout(None).await;

    let patch = Patch::Merge(kctl::json!({ "data": { "GREETING": "good morning" } }));
    cluster.api::<ConfigMap>().patch("web-config", &PatchParams::default(), &patch).await.unwrap();
    let (after, _hash) = cluster.wait_for_rollout(hash.as_deref()).await;
    assert!(after.is_disjoint(&before), "{before:?} are replaced by {after:?}");

    cluster.registry.fail(2);
    cluster.api::<RestartPolicy>().delete("web", &DeleteParams::default()).await.unwrap();
    cluster
        .until("the policy is gone", async |cluster| {
            cluster.api::<RestartPolicy>().get_opt("web").await.unwrap().is_none()
        })
        .await;
    let service = format!("{}/web", cluster.namespace);
    assert_eq!(cluster.registry.revision(&service), None);
    cluster
        .until("the events are there", async |cluster| {
            let events = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
            let reasons: Vec<String> = events.into_iter().filter_map(|event| event.reason).collect();
            ["Registered", "Replacing", "UnregisterFailed"].iter().all(|reason| reasons.iter().any(|one| one == reason))
        })
        .await;

    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    kubelet.abort();
    Api::<Namespace>::all(cluster.client).delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
}
