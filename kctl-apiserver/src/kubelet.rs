//! A simulated kubelet and scheduler: pods get a node, run, become ready, and end as gracefully as they ask for.
//!
//! It is a client like any other: it works on every API server, embedded or real.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::Clock;

/// From a node to running and ready, unless the pod says otherwise.
const STARTS_AFTER: Duration = Duration::from_secs(1);
/// A failed request is tried again after this.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The kubelet of one simulated node.
#[derive(Clone)]
pub struct Kubelet {
    client: Client,
    node: String,
    clock: Clock,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The last resourceVersion of pods that was seen and acted on.
    seen: AtomicU64,
    pending: AtomicUsize,
}

/// What a pod needs next, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Bind,
    Start,
    End,
}

struct Planned {
    step: Step,
    uid: String,
    due: Instant,
}

type Plan = BTreeMap<(String, String), Planned>;

impl Kubelet {
    /// A kubelet that works through this client.
    pub fn new(client: Client, node: &str) -> Self {
        Self::on(client, node, Clock::System)
    }

    pub(crate) fn on(client: Client, node: &str, clock: Clock) -> Self {
        Self { client, node: node.into(), clock, progress: Arc::default() }
    }

    /// How many pods wait for something that will happen.
    pub fn pending(&self) -> usize {
        self.progress.pending.load(Ordering::Acquire)
    }

    /// The last resourceVersion of pods that it has acted on.
    pub fn seen(&self) -> u64 {
        self.progress.seen.load(Ordering::Acquire)
    }

    /// Registers the node and works until it is dropped.
    pub async fn run(self) {
        while let Err(error) = self.register().await {
            tracing::warn!(%error, node = self.node, "the node is not registered yet");
            tokio::time::sleep(RETRY_AFTER).await;
        }
        loop {
            if let Err(error) = self.work().await {
                tracing::warn!(%error, node = self.node, "pods are not watched for a moment");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    async fn register(&self) -> kube::Result<()> {
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": self.node, "labels": { "kubernetes.io/hostname": self.node, "kubernetes.io/os": "linux" } },
            "status": {
                "capacity": { "cpu": "64", "memory": "256Gi", "pods": "10000" },
                "allocatable": { "cpu": "64", "memory": "256Gi", "pods": "10000" },
                "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated" }],
                "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }, { "type": "Hostname", "address": self.node }],
                "nodeInfo": {
                    "architecture": std::env::consts::ARCH,
                    "bootID": "", "containerRuntimeVersion": "simulated://1", "kernelVersion": "", "kubeProxyVersion": "",
                    "kubeletVersion": concat!("kctl-", env!("CARGO_PKG_VERSION")),
                    "machineID": "", "operatingSystem": "linux", "osImage": "simulated", "systemUUID": "",
                },
            },
        }))
        .map_err(kube::Error::SerdeError)?;
        match Api::all(self.client.clone()).create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            other => other.map(drop),
        }
    }

    /// Lists, then watches until the watch ends.
    async fn work(&self) -> kube::Result<()> {
        let pods = Api::<Pod>::all(self.client.clone());
        let list = pods.list(&ListParams::default()).await?;
        let mut plan = Plan::new();
        for pod in &list.items {
            self.consider(&mut plan, pod);
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        self.saw(&version, &plan);
        let mut events = pods.watch(&WatchParams::default(), &version).await?.boxed();
        loop {
            let next =
                plan.iter().min_by_key(|(_, planned)| planned.due).map(|(key, planned)| (key.clone(), planned.due));
            let due = next.as_ref().map_or_else(|| Instant::now() + Duration::from_secs(3_600), |(_, due)| *due);
            tokio::select! {
                biased;
                event = events.try_next() => match event? {
                    Some(event) => self.handle(&mut plan, event)?,
                    None => return Ok(()),
                },
                () = tokio::time::sleep_until(due) => {
                    if let Some((key, _)) = next {
                        self.perform(&mut plan, key).await;
                    }
                }
            }
        }
    }

    fn handle(&self, plan: &mut Plan, event: WatchEvent<Pod>) -> kube::Result<()> {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                self.consider(plan, &pod);
                self.saw(&pod.resource_version().unwrap_or_default(), plan);
            }
            WatchEvent::Deleted(pod) => {
                plan.remove(&key_of(&pod));
                self.saw(&pod.resource_version().unwrap_or_default(), plan);
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        }
        Ok(())
    }

    fn saw(&self, version: &str, plan: &Plan) {
        self.progress.pending.store(plan.len(), Ordering::Release);
        self.progress.seen.store(version.parse().unwrap_or(0), Ordering::Release);
    }

    /// Plans the next step of a pod; one that is planned already keeps its time.
    fn consider(&self, plan: &mut Plan, pod: &Pod) {
        let (key, uid) = (key_of(pod), pod.uid().unwrap_or_default());
        let Some((step, wait)) = self.next_step(pod) else {
            plan.remove(&key);
            return;
        };
        if plan.get(&key).is_some_and(|planned| planned.step == step && planned.uid == uid) {
            return;
        }
        plan.insert(key, Planned { step, uid, due: Instant::now() + wait });
    }

    fn next_step(&self, pod: &Pod) -> Option<(Step, Duration)> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_some() {
            let seconds = pod.metadata.deletion_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            // Without seconds left finalizers hold it, and those are not the kubelet's; or an API server that marks and
            // removes in two writes lost its client between them (seen on 1.36 when a client was killed).
            let held = pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
            return seconds
                .filter(|seconds| node == self.node && (*seconds > 0 || !held))
                .map(|seconds| (Step::End, Duration::from_secs(seconds)));
        }
        match (node, phase) {
            ("", _) => Some((Step::Bind, Duration::ZERO)),
            (node, "" | "Pending") if node == self.node => Some((Step::Start, STARTS_AFTER)),
            _ => None,
        }
    }

    async fn perform(&self, plan: &mut Plan, key: (String, String)) {
        let Some(Planned { step, uid, .. }) = plan.remove(&key) else { return };
        let done = match step {
            Step::Bind => self.bind(&key, &uid).await,
            Step::Start => self.start(&key, &uid).await,
            Step::End => self.end(&key, &uid).await,
        };
        match done {
            Ok(()) => {}
            // Gone or replaced meanwhile: the watch says what is there now.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => {
                tracing::warn!(%error, pod = %format!("{}/{}", key.0, key.1), ?step, "tried again");
                plan.insert(key, Planned { step, uid, due: Instant::now() + RETRY_AFTER });
            }
        }
        self.progress.pending.store(plan.len(), Ordering::Release);
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn bind(&self, (namespace, name): &(String, String), uid: &str) -> kube::Result<()> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name, "namespace": namespace, "uid": uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": self.node },
        });
        let _bound: Value =
            self.pods(namespace).create_subresource("binding", name, &PostParams::default(), &binding).await?;
        Ok(())
    }

    async fn start(&self, (namespace, name): &(String, String), uid: &str) -> kube::Result<()> {
        let pod = self.pods(namespace).get(name).await?;
        let now = self.clock.seconds();
        let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now });
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let statuses: Vec<Value> = containers
            .map(|container| {
                json!({
                    "name": container.name,
                    "image": container.image.clone().unwrap_or_default(),
                    "imageID": "",
                    "ready": true,
                    "started": true,
                    "restartCount": 0,
                    "state": { "running": { "startedAt": now } },
                })
            })
            .collect();
        let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];
        let address = format!("10.244.0.{}", 2 + self.seen() % 250);
        let patch = json!({
            "metadata": { "uid": uid },
            "status": {
                "phase": "Running",
                "startTime": now,
                "hostIP": "127.0.0.1",
                "podIP": address,
                "podIPs": [{ "ip": address }],
                "conditions": kinds.iter().map(|kind| condition(kind)).chain([condition("PodScheduled")]).collect::<Vec<_>>(),
                "containerStatuses": statuses,
            },
        });
        self.pods(namespace).patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    async fn end(&self, (namespace, name): &(String, String), uid: &str) -> kube::Result<()> {
        let now = DeleteParams::default()
            .grace_period(0)
            .preconditions(kube::api::Preconditions { uid: Some(uid.into()), resource_version: None });
        self.pods(namespace).delete(name, &now).await.map(drop)
    }
}

fn key_of(pod: &Pod) -> (String, String) {
    (pod.namespace().unwrap_or_default(), pod.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    #[tokio::test]
    async fn pod_that_is_being_deleted_ends_when_its_seconds_are_over() {
        let kubelet = ApiServer::new().kubelet();
        let check = |metadata: Value, node: &str, expected: Option<u64>| {
            let mut metadata = metadata;
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            let pod: Pod =
                serde_json::from_value(json!({ "metadata": metadata, "spec": { "nodeName": node, "containers": [] } }))
                    .unwrap();
            assert_eq!(
                kubelet.next_step(&pod),
                expected.map(|seconds| (Step::End, Duration::from_secs(seconds))),
                "{pod:?}"
            );
        };
        let node = kubelet.node.as_str();
        check(json!({ "deletionGracePeriodSeconds": 30 }), node, Some(30));
        check(json!({ "deletionGracePeriodSeconds": 0 }), node, Some(0));
        check(json!({ "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"] }), node, None);
        check(json!({ "deletionGracePeriodSeconds": 30 }), "other", None);
    }
}
