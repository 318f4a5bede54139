//! The Node of a simulated kubelet: registers it, and marks it as lost or ready.
//!
//! Labels and annotations of the Node decide if it is lost: see `stage.rs`. On a cluster, the kubelet and the node
//! lifecycle controller make these writes.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::clock::Clock;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const EFFECTS: &[&str] = &["NoSchedule", "NoExecute"];
/// The taint of a new node, until it is ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The reason why Pods on a lost node are not ready.
pub(super) const REASON: &str = "NodeNotReady";

/// The state of a node from the control plane's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeState {
    Ready,
    /// Unreachable.
    Lost,
}

impl NodeState {
    /// Returns the state that the taints of a node indicate.
    pub(super) fn from_taints(node: &Node) -> Self {
        if has_taint(node, UNREACHABLE) { Self::Lost } else { Self::Ready }
    }
}

/// Returns a new node that is ready.
///
/// Its capacity is 64 CPUs, 256 GiB and 10,000 Pods, more than tests need: the simulated scheduler
/// does not count them.
pub(super) fn ready(name: &str, clock: &Clock) -> kube::Result<Node> {
    let node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
        "status": {
            "capacity": { "cpu": "64", "memory": "256Gi", "pods": "10000" },
            "allocatable": { "cpu": "64", "memory": "256Gi", "pods": "10000" },
            "conditions": [condition(NodeState::Ready, clock)],
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }, { "type": "Hostname", "address": name }],
            "nodeInfo": {
                "architecture": std::env::consts::ARCH,
                "bootID": "", "containerRuntimeVersion": "simulated://1", "kernelVersion": "", "kubeProxyVersion": "",
                "kubeletVersion": concat!("kctl-", env!("CARGO_PKG_VERSION")),
                "machineID": "", "operatingSystem": "linux", "osImage": "simulated", "systemUUID": "",
            },
        },
    });
    serde_json::from_value(node).map_err(kube::Error::SerdeError)
}

/// Returns the condition `Ready`.
///
/// A lost node is `Unknown`, not `False`: its state is unknown to the control plane. Only the condition of a lost node
/// sets `lastTransitionTime`.
fn condition(state: NodeState, clock: &Clock) -> Value {
    if state == NodeState::Ready {
        return json!({ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated" });
    }
    json!({
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.", "lastTransitionTime": clock.seconds(),
    })
}

/// Creates the node, unless it exists.
///
/// An existing node, for example of a kubelet that has restarted, keeps its labels and taints.
pub(super) async fn register(client: &Client, name: &str, clock: &Clock) -> kube::Result<()> {
    match Api::all(client.clone()).create(&PostParams::default(), &ready(name, clock)?).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(drop),
    }
}

fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| taint.key == key)
}

/// Returns `true` if the node has the taints of this state, lost or ready.
///
/// A node that has not been written yet has the taint of a new node, which belongs to neither state.
pub(super) fn has_state(node: &Node, state: NodeState) -> bool {
    NodeState::from_taints(node) == state && !has_taint(node, NOT_READY)
}

/// Writes taints and condition of a lost or ready node, as the node lifecycle controller does, which also removes the
/// taint of a new node.
///
/// The condition is written only when the state changes, and before the taints. [`has_state`] reads the taints, so a
/// failure in between repeats both writes. Other taints are kept.
pub(super) async fn write_state(client: &Client, node: &Node, state: NodeState, clock: &Clock) -> kube::Result<()> {
    let nodes = Api::<Node>::all(client.clone());
    let name = node.metadata.name.as_deref().unwrap_or_default();
    if state != NodeState::from_taints(node) {
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition(state, clock)] } }));
        nodes.patch_status(name, &PatchParams::default(), &patch).await?;
    }
    let known = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let mut taints: Vec<Value> = known
        .into_iter()
        .filter(|taint| ![UNREACHABLE, NOT_READY].contains(&taint.key.as_str()))
        .map(|taint| serde_json::to_value(taint).map_err(kube::Error::SerdeError))
        .collect::<kube::Result<_>>()?;
    if state == NodeState::Lost {
        let now = clock.seconds();
        taints.extend(EFFECTS.iter().map(|effect| json!({ "key": UNREACHABLE, "effect": effect, "timeAdded": now })));
    }
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    nodes.patch(name, &PatchParams::default(), &patch).await.map(drop)
}

/// Returns the seconds for which a Pod remains on a lost node; `None` if it tolerates the taint forever.
///
/// The smallest `tolerationSeconds` of the matching tolerations is used. Without a match the Pod is evicted at once.
pub(super) fn toleration_seconds(pod: &Pod) -> Option<u64> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    let matching = tolerations.into_iter().flatten().filter(|toleration| {
        toleration.key.as_deref().is_none_or(|key| key.is_empty() || key == UNREACHABLE)
            && toleration.effect.as_deref().is_none_or(|effect| effect.is_empty() || effect == "NoExecute")
    });
    let seconds: Vec<Option<i64>> = matching.map(|toleration| toleration.toleration_seconds).collect();
    match seconds.iter().flatten().min() {
        Some(least) => Some(u64::try_from(*least).unwrap_or(0)),
        None if seconds.is_empty() => Some(0),
        None => None,
    }
}
