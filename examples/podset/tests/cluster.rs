//! The operator on a real API server, when `KUBECONFIG` names one.

use std::time::Duration;

use kctl::k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl::{
    apiserver::Kubelet,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use podset::PodSet;

/// Longest wait for a state.
const WITHIN: Duration = Duration::from_secs(30);

async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(WITHIN, wait).await.unwrap_or_else(|_| panic!("not within {WITHIN:?}: {what}"));
}

async fn install(client: &Client) {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in kctl::manifest::crds(&podset::app().specs(), kctl::manifest::Descriptions::Own) {
        let apply = PatchParams::apply("test").force();
        crds.patch(&crd.name_any(), &apply, &Patch::Apply(&crd)).await.unwrap();
    }
    let client = client.clone();
    eventually("the definition is served", || async {
        Api::<PodSet>::all(client.clone()).list(&ListParams::default()).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn set_is_scaled_healed_and_deleted() {
    if std::env::var_os("KUBECONFIG").is_none() {
        eprintln!("left out: KUBECONFIG names no API server");
        return;
    }
    let client = Client::try_default().await.unwrap();
    install(&client).await;
    let namespace = format!("podset-{}", std::process::id());
    let space = Namespace {
        metadata: ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let spaces = Api::<Namespace>::all(client.clone());
    spaces.create(&PostParams::default(), &space).await.unwrap();
    let manager = podset::app().manager(client.clone()).await.unwrap();
    let running = tokio::spawn(manager.run(std::future::pending()));
    let kubelet = tokio::spawn(Kubelet::new(client.clone(), "podset-test").run());

    let sets = Api::<PodSet>::namespaced(client.clone(), &namespace);
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let mut web: PodSet = kctl::from_yaml(include_str!("../web.yaml")).unwrap();
    web.metadata.namespace = None;
    let template = web.spec.template.spec.as_mut().unwrap();
    template.termination_grace_period_seconds = Some(1);
    sets.create(&PostParams::default(), &web).await.unwrap();
    let ready = |wanted: i32| {
        let (sets, pods) = (sets.clone(), pods.clone());
        async move {
            let status = sets.get("web").await.unwrap().status.unwrap_or_default();
            let n_pods = pods.list(&ListParams::default()).await.unwrap().items.len();
            status.ready_replicas == wanted && n_pods == usize::try_from(wanted).unwrap()
        }
    };
    eventually("three pods are ready", || ready(3)).await;
    for replicas in [5, 3] {
        let scale = Patch::Merge(kctl::json!({ "spec": { "replicas": replicas } }));
        sets.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
        eventually("the scale is followed", || ready(replicas)).await;
    }
    let one = pods.list(&ListParams::default()).await.unwrap().items[0].name_any();
    pods.delete(&one, &DeleteParams::default()).await.unwrap();
    eventually("a deleted pod is replaced", || ready(3)).await;
    running.abort();
    kubelet.abort();
    spaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
}
