//! A simulated kubelet and scheduler: pods get a node, run, become ready, and terminate within their grace period.
//!
//! It is an ordinary client, so it works with any API server, embedded or real. Labels and annotations change its
//! behaviour: see [`Kubelet`].

mod node;
mod stage;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kctl_apiserver::ApiServer;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    node::NodeState,
    stage::{Stage, StageRequest},
    status::Event,
};
use crate::{clock::Clock, errors::describe, timeout::with_timeout};

/// The time from scheduling to running and ready, unless the Pod specifies another.
const STARTS_AFTER: Duration = Duration::from_secs(1);
/// The wait after a failed request.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The time that a container takes to end if it handles SIGTERM.
const ENDS_AFTER: Duration = Duration::from_secs(1);
/// The longest wait. A grace period may be any integer, and adding a larger one to a clock's time would overflow.
const WAIT_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Simulates the kubelet of one node, and schedules pods to it.
///
/// A pod is running and ready one second after its creation. If its `restartPolicy` is `Never` or `OnFailure`, it
/// succeeds one second later. Otherwise it runs until it is deleted, and terminates one second after that, like a
/// container that handles SIGTERM. A `preStop` hook with `sleep` delays that, up to the grace period. A deleted pod with
/// finalizers is `Failed` from then on, with exit code 143, or 137 after the whole grace period. A pod with
/// `schedulingGates` is scheduled once they are removed.
///
/// The label or annotation `kubelet.kctl.dev/stage` selects another behaviour; an annotation takes precedence over a
/// label.
///
/// | stage of a pod | what happens |
/// | --- | --- |
/// | `running` | it runs until it is deleted, whatever its `restartPolicy` is |
/// | `slow` | it takes its delay, or else 30 seconds, until it runs |
/// | `unpullable` | it waits for its images indefinitely: `ImagePullBackOff` |
/// | `unready` | it runs, and becomes ready when its delay is over, if it has one |
/// | `succeeding` | its containers end well after the delay, or else a second, and the pod is `Succeeded` |
/// | `failing` | the same, but they fail, and the pod is `Failed`, whatever its `restartPolicy` is |
/// | `crash-looping` | its containers fail and are started again after pauses of 10 seconds to 5 minutes |
///
/// More keys with the prefix `kubelet.kctl.dev/` give details: `delay` (`90s`, `1m30s`, at most 24 hours), `exit-code`,
/// `reason`, `message`, and `container-name` for the only container that is affected. A pod with
/// `ignore-sigterm: "true"` takes its whole grace period to terminate; [`Kubelet::ignoring_sigterm`] sets that for all
/// pods.
///
/// A node with the stage `lost` is unreachable: it is not ready, and its pods are not ready. The pods are deleted
/// when their tolerations expire, but never terminate, and new pods are not scheduled to the node. Removing the stage
/// undoes all of that.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_apiserver::ApiServer;
/// use kctl_workloads::Kubelet;
/// use kube::{Api, Client, api::PostParams};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
/// # runtime.block_on(async {
/// let server = ApiServer::new();
/// tokio::spawn(Kubelet::for_server(&server).run());
/// let pods = Api::<Pod>::default_namespaced(Client::new(server.service(), "default"));
/// let pod = serde_json::from_value(json!({
///     "metadata": { "name": "a", "labels": { "kubelet.kctl.dev/stage": "failing" } },
///     "spec": { "containers": [{ "name": "c", "image": "i" }] },
/// }))?;
/// pods.create(&PostParams::default(), &pod).await?;
/// tokio::time::sleep(std::time::Duration::from_secs(3)).await;
/// let phase = pods.get("a").await?.status.and_then(|status| status.phase);
/// assert_eq!(phase.as_deref(), Some("Failed"));
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct Kubelet {
    client: Client,
    /// The name of the node. Pods of other nodes are left alone.
    node: String,
    clock: Clock,
    /// The reaction of all containers to SIGTERM.
    ends: Ends,
    /// Read by tests: the number of pending steps, and the version that was handled.
    progress: Arc<Progress>,
}

impl std::fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubelet").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The reaction of containers to SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// They end after a second, unless their Pod specifies otherwise.
    Soon,
    /// They ignore the signal, and end when the grace period is over.
    AfterGrace,
}

/// The progress of a kubelet, read by tests.
#[derive(Default)]
struct Progress {
    /// The last `resourceVersion` of Pods whose changes were handled.
    seen: AtomicU64,
    /// The number of planned steps, without those that repeat forever.
    pending: AtomicUsize,
    /// `true` while the node is unreachable.
    lost: AtomicBool,
}

/// The next change of a Pod's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The Pod has no node, and is scheduled.
    Bind,
    /// The Pod waits for this reason, which its status shows.
    Hold(&'static str),
    /// The containers of the Pod start.
    Start,
    /// The Pod becomes ready.
    Ready,
    /// The containers of the Pod fail, and will be restarted.
    Crash,
    /// The crashed containers of the Pod start again.
    Restart,
    /// The containers of the Pod end for good.
    Finish,
    /// The containers of the deleted Pod are killed. Finalizers keep the object.
    Kill,
    /// The Pod has terminated, and is removed.
    End,
    /// The node of the Pod is lost: the Pod becomes not ready, and is deleted later.
    Lose,
    /// The Pod is deleted, because its node was lost for too long.
    Evict,
}

impl Step {
    /// Returns `true` for a step that repeats forever: tests do not wait for it.
    fn is_endless(self) -> bool {
        matches!(self, Self::Crash | Self::Restart)
    }

    /// Returns `true` for the steps at the end of a grace period.
    fn ends_grace_period(self) -> bool {
        matches!(self, Self::Kill | Self::End)
    }
}

/// The next step of a Pod.
struct Planned {
    step: Step,
    /// Protects a new Pod of the same name from the step of its predecessor.
    uid: String,
    due: Instant,
}

/// The next steps of all Pods. A Pod has at most one.
type Plan = BTreeMap<PodKey, Planned>;

/// Returns the Pod with the earliest step, and the time of the step.
fn next_due(plan: &Plan) -> Option<(PodKey, Instant)> {
    let (key, planned) = plan.iter().min_by_key(|(_, planned)| planned.due)?;
    Some((key.clone(), planned.due))
}

/// The namespace and the name of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PodKey {
    namespace: String,
    name: String,
}

impl PodKey {
    /// Returns the key of a Pod.
    fn from_pod(pod: &Pod) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() }
    }
}

impl Kubelet {
    /// Creates a kubelet for the node with this name, which uses `client`. Times in objects come from the machine's
    /// clock.
    ///
    /// Use it for an API server in another process; [`for_server`](Self::for_server) is for an embedded one. A request
    /// without a complete response within 30 s fails and is sent again.
    pub fn new(client: Client, node: &str) -> Self {
        Self::with_clock(with_timeout(client), node, Clock::Machine)
    }

    /// Creates a kubelet for the node `kctl-node` of an embedded API server. It has all permissions there, and
    /// writes the times of the server's clock, which a test can simulate.
    pub fn for_server(server: &ApiServer) -> Self {
        let client = Client::new(server.service(), "default");
        Self::with_clock(client, "kctl-node", Clock::Server(server.clone()))
    }

    fn with_clock(client: Client, node: &str, clock: Clock) -> Self {
        Self { client, node: node.into(), clock, ends: Ends::Soon, progress: Arc::default() }
    }

    /// Makes all containers ignore SIGTERM, so that each deleted pod takes its whole grace period to terminate. Use
    /// it to test that a controller handles slow deletion. The label `kubelet.kctl.dev/ignore-sigterm: "true"` does
    /// the same for one pod.
    #[must_use]
    pub fn ignoring_sigterm(mut self) -> Self {
        self.ends = Ends::AfterGrace;
        self
    }

    /// Returns the number of pods with a pending change of state. Pods in a crash loop do not count, because their
    /// changes never end.
    pub fn pending(&self) -> usize {
        self.progress.pending.load(Ordering::Acquire)
    }

    /// Returns the latest `resourceVersion` of pods that the kubelet has handled.
    pub fn observed_revision(&self) -> u64 {
        self.progress.seen.load(Ordering::Acquire)
    }

    /// Registers the node and runs until the future is dropped.
    pub async fn run(self) {
        while let Err(error) = node::register(&self.client, &self.node, &self.clock).await {
            tracing::warn!(error = %describe(&error), node = self.node, "failed to register the node; retrying");
            tokio::time::sleep(RETRY_AFTER).await;
        }
        // The plan outlives watches, which end every few minutes.
        let mut plan = Plan::new();
        loop {
            if let Err(error) = self.work(&mut plan).await {
                tracing::warn!(error = %describe(&error), node = self.node, "failed to watch pods; retrying");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    /// Reads the node, and writes its state if it is lost or found. Returns the `resourceVersion` of the list, from
    /// which the watch starts. The version of the node itself may be compacted already.
    async fn look_at_node(&self) -> kube::Result<String> {
        let only = ListParams::default().fields(&format!("metadata.name={}", self.node));
        let list = Api::<Node>::all(self.client.clone()).list(&only).await?;
        if let Some(node) = list.items.first() {
            let lost = stage::is_lost(&node.metadata);
            self.progress.lost.store(lost, Ordering::Release);
            let state = if lost { NodeState::Lost } else { NodeState::Ready };
            if !node::has_state(node, state) {
                node::write_state(&self.client, node, state, &self.clock).await?;
            }
        }
        Ok(list.metadata.resource_version.unwrap_or_default())
    }

    /// Returns `true` if the node is unreachable.
    fn is_lost(&self) -> bool {
        self.progress.lost.load(Ordering::Acquire)
    }

    /// Lists Pods and then watches, until a watch ends or the node is lost or found.
    async fn work(&self, plan: &mut Plan) -> kube::Result<()> {
        // A server that ends watches at once must not cause a busy loop.
        let may_end_at = Instant::now() + RETRY_AFTER;
        let version = self.look_at_node().await?;
        let own_node = WatchParams::default().fields(&format!("metadata.name={}", self.node));
        let nodes = Api::<Node>::all(self.client.clone());
        let mut nodes = nodes.watch(&own_node, &version).await?.boxed();
        let pods = Api::<Pod>::all(self.client.clone());
        let list = pods.list(&ListParams::default()).await?;
        let listed: BTreeSet<_> = list.items.iter().map(PodKey::from_pod).collect();
        plan.retain(|key, _| listed.contains(key));
        for pod in &list.items {
            self.plan_step(plan, pod);
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        self.record_progress(&version, plan);
        let mut events = pods.watch(&WatchParams::default(), &version).await?.boxed();
        loop {
            let next = next_due(plan);
            let due = next.as_ref().map_or_else(|| Instant::now() + Duration::from_secs(3_600), |(_, due)| *due);
            tokio::select! {
                biased;
                event = events.try_next() => match event? {
                    Some(event) => self.handle(plan, event)?,
                    None => break,
                },
                event = nodes.try_next() => match event? {
                    Some(WatchEvent::Added(node) | WatchEvent::Modified(node))
                        if stage::is_lost(&node.metadata) == self.is_lost() => {}
                    Some(WatchEvent::Error(status)) => return Err(kube::Error::Api(status)),
                    // All Pods are planned again.
                    Some(WatchEvent::Added(_) | WatchEvent::Modified(_)) => return Ok(()),
                    None => break,
                    Some(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_)) => {}
                },
                () = tokio::time::sleep_until(due) => {
                    if let Some((key, _)) = next {
                        self.perform(plan, key).await;
                    }
                }
            }
        }
        while let Some((key, due)) = next_due(plan).filter(|(_, due)| *due <= may_end_at) {
            tokio::time::sleep_until(due).await;
            self.perform(plan, key).await;
        }
        tokio::time::sleep_until(may_end_at).await;
        Ok(())
    }

    fn handle(&self, plan: &mut Plan, event: WatchEvent<Pod>) -> kube::Result<()> {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                self.plan_step(plan, &pod);
                self.record_progress(&pod.resource_version().unwrap_or_default(), plan);
            }
            WatchEvent::Deleted(pod) => {
                plan.remove(&PodKey::from_pod(&pod));
                self.record_progress(&pod.resource_version().unwrap_or_default(), plan);
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        }
        Ok(())
    }

    /// Records the version up to which events are handled.
    fn record_progress(&self, version: &str, plan: &Plan) {
        self.count(plan);
        self.progress.seen.store(version.parse().unwrap_or(0), Ordering::Release);
    }

    /// Records the number of pending steps. Steps that repeat forever do not count.
    fn count(&self, plan: &Plan) {
        let n_awaited = plan.values().filter(|planned| !planned.step.is_endless()).count();
        self.progress.pending.store(n_awaited, Ordering::Release);
    }

    /// Plans the next step of a Pod. A step that is planned already keeps its time. The end of a deleted Pod never moves to
    /// a later time: a second delete may shorten the grace period, and finalizers may be removed during it.
    fn plan_step(&self, plan: &mut Plan, pod: &Pod) {
        let (key, uid) = (PodKey::from_pod(pod), pod.uid().unwrap_or_default());
        let Some((step, wait)) = self.next_step(pod) else {
            plan.remove(&key);
            return;
        };
        let mut due = Instant::now() + wait.min(WAIT_MAX);
        match plan.get(&key).filter(|planned| planned.uid == uid) {
            Some(planned) if step.ends_grace_period() && planned.step.ends_grace_period() => due = due.min(planned.due),
            Some(planned) if planned.step == step => return,
            _ => {}
        }
        plan.insert(key, Planned { step, uid, due });
    }

    /// Returns the next step of a Pod and the time until it.
    ///
    /// A step depends only on the state of the Pod, so a kubelet that restarts continues with the same step. Its wait
    /// starts again. The checks run in this order: a lost node, deletion, scheduling, start, and the stage.
    fn next_step(&self, pod: &Pod) -> Option<(Step, Duration)> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        if self.is_lost() {
            return (node == self.node).then(|| on_lost_node(pod)).flatten();
        }
        if pod.metadata.deletion_timestamp.is_some() {
            let seconds = pod.metadata.deletion_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            // With a grace period of 0 there are two cases. Either finalizers of other controllers hold the Pod. Or an
            // API server that marks and removes in two writes was interrupted (seen on 1.36 when a client was killed).
            let held = pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
            // A held Pod gets a final phase first, as on a cluster: the owner of a finalizer may wait for it.
            let step = if held && node == self.node && ["Pending", "Running"].contains(&phase) {
                Step::Kill
            } else {
                Step::End
            };
            // A Pod without a node remains after such an interruption. On a cluster, the pod garbage collector
            // deletes it.
            let is_due = |seconds: &u64| *seconds > 0 || !held || step == Step::Kill;
            // The containers of a held Pod that has a final phase were killed already.
            let has_ended = held && ["Succeeded", "Failed"].contains(&phase);
            let wait = |grace| if has_ended { Duration::ZERO } else { self.ends_after(pod, grace) };
            return seconds
                .filter(|seconds| [self.node.as_str(), ""].contains(&node) && is_due(seconds))
                .map(|seconds| (step, wait(Duration::from_secs(seconds))));
        }
        match (node, phase) {
            ("", _) if is_gated(pod) => None,
            ("", _) => Some((Step::Bind, Duration::ZERO)),
            (node, "" | "Pending") if node == self.node => pending_step(pod),
            (node, "Running") if node == self.node => running_step(pod),
            _ => None,
        }
    }

    /// Returns the time that a deleted Pod takes to terminate.
    fn ends_after(&self, pod: &Pod, grace: Duration) -> Duration {
        if self.ignores_sigterm(pod) {
            return grace;
        }
        let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        if !runs {
            return Duration::ZERO;
        }
        grace.min(pre_stop(pod).saturating_add(ENDS_AFTER))
    }

    async fn perform(&self, plan: &mut Plan, key: PodKey) {
        let Some(Planned { step, uid, .. }) = plan.remove(&key) else { return };
        let done = match step {
            Step::Bind => self.bind(&key, &uid).await,
            Step::Hold(reason) => self.report(&key, &uid, Event::Waits(reason)).await,
            Step::Start => self.start(&key, &uid).await,
            Step::Ready | Step::Restart => self.report(&key, &uid, Event::Runs { ready: true }).await,
            Step::Crash => self.report(&key, &uid, Event::Crashed).await,
            Step::Finish => self.report(&key, &uid, Event::Ended).await,
            Step::Kill => self.kill(&key, &uid).await,
            Step::Lose => self.mark_not_ready(&key, &uid).await,
            Step::Evict => self.evict(&key, &uid).await,
            Step::End => self.remove(&key, &uid).await,
        };
        match done {
            Ok(()) => {}
            // The Pod is gone or replaced: the watch reports its new state.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => {
                let pod = format!("{}/{}", key.namespace, key.name);
                tracing::warn!(error = %describe(&error), %pod, ?step, "failed to change a pod; retrying");
                plan.insert(key, Planned { step, uid, due: Instant::now() + RETRY_AFTER });
            }
        }
        self.count(plan);
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Schedules a Pod to the node.
    async fn bind(&self, key: &PodKey, uid: &str) -> kube::Result<()> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": key.name, "namespace": key.namespace, "uid": uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": self.node },
        });
        let _bound: Value = self
            .pods(&key.namespace)
            .create_subresource("binding", &key.name, &PostParams::default(), &binding)
            .await?;
        Ok(())
    }

    /// Writes the status of a running Pod.
    async fn start(&self, key: &PodKey, uid: &str) -> kube::Result<()> {
        let pod = self.pods(&key.namespace).get(&key.name).await?;
        let (request, now) = (StageRequest::from_pod(&pod), self.clock.seconds());
        let ready = request.stage != Some(Stage::Unready);
        let mut status = status::status(&pod, &request, Event::Runs { ready }, &now);
        let address = format!("10.244.0.{}", 2 + self.observed_revision() % 250);
        status["startTime"] = now.into();
        status["hostIP"] = "127.0.0.1".into();
        status["podIP"] = address.clone().into();
        status["podIPs"] = json!([{ "ip": address }]);
        self.write(key, uid, status).await
    }

    /// Writes the status after an event of the containers.
    async fn report(&self, key: &PodKey, uid: &str, event: Event) -> kube::Result<()> {
        let pod = self.pods(&key.namespace).get(&key.name).await?;
        let status = status::status(&pod, &StageRequest::from_pod(&pod), event, &self.clock.seconds());
        self.write(key, uid, status).await
    }

    /// Writes the status of a Pod whose containers were killed.
    async fn kill(&self, key: &PodKey, uid: &str) -> kube::Result<()> {
        let pod = self.pods(&key.namespace).get(&key.name).await?;
        let code = if self.ignores_sigterm(&pod) { stage::SIGKILL_CODE } else { stage::SIGTERM_CODE };
        let request = StageRequest::from_pod(&pod).into_killed(code);
        self.write(key, uid, status::status(&pod, &request, Event::Ended, &self.clock.seconds())).await
    }

    /// Returns `true` if the containers of a Pod end only when its grace period is over.
    fn ignores_sigterm(&self, pod: &Pod) -> bool {
        self.ends == Ends::AfterGrace || stage::ignores_sigterm(&pod.metadata)
    }

    /// Patches the status. The uid protects a new Pod of the same name.
    async fn write(&self, key: &PodKey, uid: &str, status: Value) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "uid": uid }, "status": status }));
        self.pods(&key.namespace).patch_status(&key.name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Marks a Pod as not ready, because its node is lost.
    async fn mark_not_ready(&self, key: &PodKey, uid: &str) -> kube::Result<()> {
        let ready = json!({
            "type": "Ready", "status": "False", "reason": node::REASON, "lastTransitionTime": self.clock.seconds(),
        });
        let patch = Patch::Strategic(json!({ "metadata": { "uid": uid }, "status": { "conditions": [ready] } }));
        self.pods(&key.namespace).patch_status(&key.name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Deletes a Pod whose toleration of the lost node has expired.
    async fn evict(&self, key: &PodKey, uid: &str) -> kube::Result<()> {
        let preconditions = kube::api::Preconditions { uid: Some(uid.into()), resource_version: None };
        let deletion = DeleteParams::default().preconditions(preconditions);
        self.pods(&key.namespace).delete(&key.name, &deletion).await.map(drop)
    }

    /// Removes a Pod that has terminated.
    async fn remove(&self, key: &PodKey, uid: &str) -> kube::Result<()> {
        let now = DeleteParams::default()
            .grace_period(0)
            .preconditions(kube::api::Preconditions { uid: Some(uid.into()), resource_version: None });
        self.pods(&key.namespace).delete(&key.name, &now).await.map(drop)
    }
}

/// Returns `true` if scheduling gates keep the Pod from being scheduled.
fn is_gated(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.is_some_and(|gates| !gates.is_empty())
}

/// Returns the next step of a Pod with a node that does not run.
fn pending_step(pod: &Pod) -> Option<(Step, Duration)> {
    let request = StageRequest::from_pod(pod);
    let holds = match request.stage {
        Some(Stage::Unpullable) => "ImagePullBackOff",
        Some(Stage::Slow) => "ContainerCreating",
        _ => return Some((Step::Start, STARTS_AFTER)),
    };
    if waiting_for(pod) != Some(holds) {
        return Some((Step::Hold(holds), Duration::ZERO));
    }
    (request.stage == Some(Stage::Slow)).then(|| (Step::Start, request.starts_after(STARTS_AFTER)))
}

/// Returns the next step of a running Pod; most have none.
fn running_step(pod: &Pod) -> Option<(Step, Duration)> {
    let request = StageRequest::from_pod(pod);
    if waiting_for(pod) == Some("CrashLoopBackOff") {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        let n_restarts = statuses.into_iter().flatten().map(|status| status.restart_count).max().unwrap_or(0);
        return Some((Step::Restart, stage::back_off(n_restarts)));
    }
    match request.stage {
        Some(Stage::CrashLooping) => Some((Step::Crash, request.runs_for())),
        Some(Stage::Succeeding | Stage::Failing) => Some((Step::Finish, request.runs_for())),
        Some(Stage::Unready) if not_ready_because(pod).is_some() => {
            request.ready_after().map(|delay| (Step::Ready, delay))
        }
        // The node is back: the Pod becomes ready again.
        _ if not_ready_because(pod) == Some(node::REASON) => Some((Step::Ready, Duration::ZERO)),
        _ => None,
    }
}

fn on_lost_node(pod: &Pod) -> Option<(Step, Duration)> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
    if runs && not_ready_because(pod).is_none() {
        return Some((Step::Lose, Duration::ZERO));
    }
    node::toleration_seconds(pod).map(|seconds| (Step::Evict, Duration::from_secs(seconds)))
}

/// Returns the reason why a container waits.
fn waiting_for(pod: &Pod) -> Option<&str> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find_map(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref())
}

/// Returns the reason why a Pod is not ready: empty if it has none, `None` if the Pod is ready.
fn not_ready_because(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    (ready.status != "True").then(|| ready.reason.as_deref().unwrap_or_default())
}

/// Returns the longest `preStop` sleep of the containers, after which they get SIGTERM.
fn pre_stop(pod: &Pod) -> Duration {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let sleeps = containers.filter_map(|container| {
        let sleep = container.lifecycle.as_ref()?.pre_stop.as_ref()?.sleep.as_ref()?;
        u64::try_from(sleep.seconds).ok()
    });
    Duration::from_secs(sleeps.max().unwrap_or(0))
}

#[cfg(test)]
mod tests;
