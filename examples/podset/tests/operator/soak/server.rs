//! A client of the API server that repeats every request until it gets a response, because the server crashes during
//! the test.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt;
use kctl::{
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchEvent, WatchParams},
    },
    prelude::*,
};
use podset::PodSet;

use super::ledger::Ledger;

/// Wait before a request is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Seconds after which a watch is restarted.
const WATCH_TIMEOUT: u32 = 60;

/// Repeats a request until it succeeds. Returns `None` for 404 and 409, and panics for other client errors.
pub(crate) async fn retry<T, F>(what: &str, mut request: impl FnMut() -> F) -> Option<T>
where
    F: Future<Output = kctl::kube::Result<T>>,
{
    loop {
        match request().await {
            Ok(response) => return Some(response),
            Err(kctl::kube::Error::Api(status)) if [404, 409].contains(&status.code) => return None,
            Err(kctl::kube::Error::Api(status)) if (400..429).contains(&status.code) => panic!("{what}: {status}"),
            Err(_away) => tokio::time::sleep(RETRY_DELAY).await,
        }
    }
}

/// Crashes the API server and starts it again, with the command in `KCTL_CRASH_API_SERVER`.
pub(crate) async fn crash() {
    let command = std::env::var("KCTL_CRASH_API_SERVER")
        .expect("set KCTL_CRASH_API_SERVER to the command that crashes the API server and starts it again");
    let mut words = command.split_whitespace();
    let program = words.next().expect("a command");
    let status = tokio::process::Command::new(program).args(words).stdout(Stdio::null()).status().await.unwrap();
    assert!(status.success(), "{command}: {status}");
    eprintln!("        the API server has crashed and is back");
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    sets: Api<PodSet>,
    pods: Api<Pod>,
}

impl Server {
    /// Connects to the server, installs the CRD, and creates a separate namespace.
    pub(crate) async fn prepare() -> Self {
        let client = Client::try_default().await.unwrap();
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        for definition in kctl::manifest::crds(&podset::app().specs(), kctl::manifest::Descriptions::Own).unwrap() {
            let apply = PatchParams::apply("soak").force();
            definitions.patch(&definition.name_any(), &apply, &Patch::Apply(&definition)).await.unwrap();
        }
        let namespace = format!("soak-{}", std::process::id());
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let space = Namespace { metadata, ..Namespace::default() };
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &space).await.unwrap();
        let (sets, pods) = (Api::namespaced(client.clone(), &namespace), Api::namespaced(client.clone(), &namespace));
        while Api::<PodSet>::list(&sets, &ListParams::default()).await.is_err() {
            tokio::time::sleep(RETRY_DELAY).await;
        }
        Self { client, namespace, ledger: Arc::default(), sets, pods }
    }

    pub(crate) async fn create_set(&self, name: &str, replicas: usize) {
        self.ledger.lock().unwrap().grows(name, replicas);
        let mut set: PodSet = kctl::from_yaml(include_str!("../../../web.yaml")).unwrap();
        (set.metadata.name, set.metadata.namespace) = (Some(name.into()), None);
        set.spec.replicas = replicas.try_into().unwrap();
        let labels = BTreeMap::from([("set".to_owned(), name.to_owned())]);
        set.spec.selector.match_labels = Some(labels.clone());
        set.spec.template.metadata.get_or_insert_default().labels = Some(labels);
        set.spec.template.spec.as_mut().unwrap().termination_grace_period_seconds = Some(0);
        let params = PostParams::default();
        retry(name, || self.sets.create(&params, &set)).await;
    }

    pub(crate) async fn scale(&self, name: &str, replicas: usize) {
        let patch = Patch::Merge(kctl::json!({ "spec": { "replicas": replicas } }));
        let params = PatchParams::default();
        retry(name, || self.sets.patch_scale(name, &params, &patch)).await;
    }

    /// Deletes the pod if it still has this uid.
    pub(crate) async fn delete_pod(&self, name: &str, uid: &str) {
        let only = Preconditions { uid: Some(uid.into()), resource_version: None };
        let params = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
        retry(name, || self.pods.delete(name, &params)).await;
    }

    pub(crate) async fn all_sets(&self) -> Vec<PodSet> {
        let all = ListParams::default();
        retry("sets", || self.sets.list(&all)).await.unwrap().items
    }

    pub(crate) async fn all_pods(&self) -> Vec<Pod> {
        let all = ListParams::default();
        retry("pods", || self.pods.list(&all)).await.unwrap().items
    }

    /// Passes each watch event to the ledger. After a watch has expired, passes a complete list of pods.
    pub(crate) async fn watch(self) {
        let all = ListParams::default();
        loop {
            let pods = retry("pods", || self.pods.list(&all)).await.unwrap();
            self.ledger.lock().unwrap().sees_all(&pods.items);
            let version = pods.metadata.resource_version.unwrap_or_default();
            self.watch_from(version).await;
            self.ledger.lock().unwrap().n_gaps += 1;
        }
    }

    /// Watches from a version on. Returns when the server responds with 410, because it no longer has the events.
    async fn watch_from(&self, mut version: String) {
        let params = WatchParams::default().timeout(WATCH_TIMEOUT);
        loop {
            let Ok(events) = self.pods.watch(&params, &version).await else {
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            };
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        self.ledger.lock().unwrap().sees(&pod);
                        version = pod.metadata.resource_version.unwrap_or(version);
                    }
                    WatchEvent::Deleted(pod) => {
                        self.ledger.lock().unwrap().sees_deleted(&pod);
                        version = pod.metadata.resource_version.unwrap_or(version);
                    }
                    WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                    WatchEvent::Error(status) if status.code == 410 => return,
                    WatchEvent::Error(_) => break,
                }
            }
        }
    }

    /// Returns the names and the `resourceVersion`s of all sets and pods.
    pub(crate) async fn versions(&self) -> BTreeSet<(String, Option<String>)> {
        let sets = self.all_sets().await.into_iter().map(|set| set.metadata);
        let pods = self.all_pods().await.into_iter().map(|pod| pod.metadata);
        sets.chain(pods).map(|meta| (meta.name.unwrap_or_default(), meta.resource_version)).collect()
    }
}
