//! Tests the operator on a real API server: `cargo xtask real-server`, or `--ignored` with `KUBECONFIG` and
//! `KCTL_CRASH_API_SERVER` set.

use std::{
    collections::BTreeSet,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::StreamExt;

use kctl::k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl::{
    apiserver::Kubelet,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    },
    prelude::*,
};
use podset::PodSet;

/// Longest wait for a state.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest wait for the garbage collector. It discovers new kinds every 30 s. Until it knows the kind of an owner, it
/// retries each dependent after 5 ms · 2^n. So a pod of the first second may only be retried after 41 or 82 s.
const GC_TIMEOUT: Duration = Duration::from_secs(120);

async fn eventually<F: Future<Output = bool>>(what: &str, holds: impl FnMut() -> F) {
    eventually_within(TIMEOUT, what, holds).await;
}

async fn eventually_within<F: Future<Output = bool>>(limit: Duration, what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| panic!("not within {limit:?}: {what}"));
}

/// Held by the test that runs a simulated kubelet. A kubelet runs the pods of all namespaces, so two would interfere.
static ONE_KUBELET: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn create_namespace(client: &Client, prefix: &str) -> String {
    let name = format!("{prefix}-{}", std::process::id());
    let space = Namespace {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &space).await.unwrap();
    name
}

async fn delete_namespace(client: &Client, name: &str) {
    // Some servers have no namespace controller. There, the sets would remain for the next program that has the kind.
    let sets = Api::<PodSet>::namespaced(client.clone(), name);
    sets.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    Api::<Namespace>::all(client.clone()).delete(name, &DeleteParams::default()).await.unwrap();
}

async fn install(client: &Client) {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in kctl::manifest::crds(&podset::app().specs(), kctl::manifest::Descriptions::Own).unwrap() {
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
#[ignore = "needs KUBECONFIG: cargo xtask real-server"]
async fn set_is_scaled_healed_and_deleted() {
    let _alone = ONE_KUBELET.lock().await;
    let client = Client::try_default().await.unwrap();
    install(&client).await;
    let namespace = create_namespace(&client, "podset").await;
    let manager = podset::app().manager(client.clone()).await.unwrap();
    let running = tokio::spawn(manager.run(std::future::pending()));
    let kubelet = tokio::spawn(Kubelet::new(client.clone(), "podset-test").run());

    let sets = Api::<PodSet>::namespaced(client.clone(), &namespace);
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let mut web: PodSet = kctl::from_yaml(include_str!("../../web.yaml")).unwrap();
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
    sets.delete("web", &DeleteParams::default()).await.unwrap();
    let none = || async { pods.list(&ListParams::default()).await.unwrap().items.is_empty() };
    eventually_within(GC_TIMEOUT, "the pods go with the set", none).await;
    running.abort();
    kubelet.abort();
    delete_namespace(&client, &namespace).await;
}

/// The operator in a separate process, which the test kills.
struct Operator(Child);

impl Operator {
    fn start(namespace: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podset"));
        command.args(["run", "--namespace", namespace]).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn kill(self) {
        drop(self);
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

/// Records in `most` the maximum number of simultaneous pods that are not being deleted, as a watch reports them.
async fn count_most(pods: Api<Pod>, most: Arc<AtomicUsize>) {
    let mut live = BTreeSet::new();
    loop {
        let Ok(events) = pods.watch(&WatchParams::default(), "0").await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut events = std::pin::pin!(events);
        while let Some(Ok(event)) = events.next().await {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) if pod.metadata.deletion_timestamp.is_none() => {
                    live.insert(pod.uid());
                }
                WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => drop(live.remove(&pod.uid())),
                _ => {}
            }
            most.fetch_max(live.len(), Ordering::SeqCst);
        }
    }
}

/// Crashes the API server and starts it again, with the command in `KCTL_CRASH_API_SERVER`.
fn crash_api_server() {
    let command = std::env::var("KCTL_CRASH_API_SERVER")
        .expect("set KCTL_CRASH_API_SERVER to the command that crashes the API server and starts it again");
    let words: Vec<_> = command.split_whitespace().collect();
    let crashed = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).status().unwrap();
    assert!(crashed.success(), "{command}: {crashed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG and KCTL_CRASH_API_SERVER: cargo xtask real-server"]
async fn killed_operator_never_creates_an_extra_pod() {
    let _alone = ONE_KUBELET.lock().await;
    let client = Client::try_default().await.unwrap();
    install(&client).await;
    let namespace = create_namespace(&client, "podset-crash").await;
    let kubelet = tokio::spawn(Kubelet::new(client.clone(), "podset-crash").run());
    let sets = Api::<PodSet>::namespaced(client.clone(), &namespace);
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let mut web: PodSet = kctl::from_yaml(include_str!("../../web.yaml")).unwrap();
    web.metadata.namespace = None;
    web.spec.replicas = 0;
    web.spec.template.spec.as_mut().unwrap().termination_grace_period_seconds = Some(0);
    sets.create(&PostParams::default(), &web).await.unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let counting = tokio::spawn(count_most(pods.clone(), most.clone()));

    // Slow start creates batches of 1, 2, 4, … pods. These kill times fall before, between and after the batches.
    for (round, replicas) in [12, 3, 15, 1, 20].into_iter().enumerate() {
        let before = pods.list(&ListParams::default()).await.unwrap().items.len();
        most.store(before, Ordering::SeqCst);
        let scale = Patch::Merge(kctl::json!({ "spec": { "replicas": replicas } }));
        sets.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
        for life in [60, 90, 120, 160, 220] {
            let operator = Operator::start(&namespace);
            tokio::time::sleep(Duration::from_millis(life)).await;
            operator.kill();
        }
        if round % 2 == 1 {
            crash_api_server();
        }
        let operator = Operator::start(&namespace);
        eventually("the set has its pods", || {
            let (sets, pods) = (sets.clone(), pods.clone());
            async move {
                let Ok(set) = sets.get("web").await else { return false };
                let Ok(pods) = pods.list(&ListParams::default()).await else { return false };
                set.status.unwrap_or_default().ready_replicas == replicas
                    && pods.items.len() == usize::try_from(replicas).unwrap()
            }
        })
        .await;
        operator.kill();
        let allowed = before.max(usize::try_from(replicas).unwrap());
        assert!(most.load(Ordering::SeqCst) <= allowed, "round {round}: {most:?} pods where {allowed} are allowed");
    }
    counting.abort();
    kubelet.abort();
    delete_namespace(&client, &namespace).await;
}
