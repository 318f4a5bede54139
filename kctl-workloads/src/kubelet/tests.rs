//! Tests of the simulated kubelet under paused time: usual Pods, stages, and a lost node.

use kctl_apiserver::{
    User,
    faults::{Faults, Moment, RequestFault, Rule},
};
use kube::client::Body;

use super::*;

#[tokio::test]
async fn pod_that_ignores_sigterm_takes_its_grace_period() {
    let kubelet = Kubelet::for_server(&ApiServer::new()).ignoring_sigterm();
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
    check(json!({ "deletionGracePeriodSeconds": 0 }), "", Some(0));
    check(json!({ "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"] }), "", None);
}

#[tokio::test]
async fn deleted_pod_ends_after_a_second() {
    let kubelet = Kubelet::for_server(&ApiServer::new());
    let check = |grace: u64, phase: &str, labels: Value, lifecycle: Value, expected: u64| {
        let pod = json!({
            "metadata": {
                "labels": labels, "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace,
            },
            "spec": { "nodeName": kubelet.node, "containers": [{ "name": "c", "lifecycle": lifecycle }] },
            "status": { "phase": phase },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(kubelet.next_step(&pod), Some((Step::End, Duration::from_secs(expected))), "{pod:?}");
    };
    let sleep = |seconds: u64| json!({ "preStop": { "sleep": { "seconds": seconds } } });
    check(30, "Running", json!({}), Value::Null, 1);
    check(1, "Running", json!({}), Value::Null, 1);
    check(30, "Pending", json!({}), Value::Null, 0);
    check(30, "Running", json!({ "kubelet.kctl.dev/ignore-sigterm": "true" }), Value::Null, 30);
    check(30, "Running", json!({}), sleep(5), 6);
    check(30, "Running", json!({}), sleep(60), 30);
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_is_removed_after_a_second() {
    let world = KubeletWorld::new();
    for (name, policy, stage) in [
        ("always", "Always", None),
        ("never", "Never", None),
        ("on-failure", "OnFailure", None),
        ("kept", "Never", Some("running")),
        ("fails", "Never", Some("failing")),
    ] {
        let annotations = stage.map(|stage| json!({ "kubelet.kctl.dev/stage": stage }));
        let pod = json!({
            "metadata": { "name": name, "annotations": annotations },
            "spec": { "restartPolicy": policy, "containers": [{ "name": "c", "image": "i" }] },
        });
        world.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }
    after(2).await;
    assert_eq!(world.describe_pod("always").await, "Running ready runs/0");
    assert_eq!(world.describe_pod("never").await, "Succeeded not ready Completed 0/0");
    assert_eq!(world.describe_pod("on-failure").await, "Succeeded not ready Completed 0/0");
    assert_eq!(world.describe_pod("kept").await, "Running ready runs/0");
    assert_eq!(world.describe_pod("fails").await, "Failed not ready Error 1/0");
    world.pods.delete("always", &DeleteParams::default()).await.unwrap();
    assert_eq!(world.describe_pod("always").await, "Running ready runs/0 deleted");
    after(1).await;
    assert_eq!(world.describe_pod("always").await, "gone");
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_with_finalizer_gets_final_phase() {
    let world = KubeletWorld::new();
    for (name, annotations) in [("ends", json!({})), ("ignores", json!({ "kubelet.kctl.dev/ignore-sigterm": "true" }))]
    {
        let pod = json!({
            "metadata": { "name": name, "annotations": annotations, "finalizers": ["example.com/a"] },
            "spec": { "terminationGracePeriodSeconds": 10, "containers": [{ "name": "c", "image": "i" }] },
        });
        world.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }
    after(2).await;
    for name in ["ends", "ignores"] {
        world.pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    after(5).await;
    assert_eq!(world.describe_pod("ends").await, "Failed not ready Error 143/0 deleted");
    assert_eq!(world.describe_pod("ignores").await, "Running ready runs/0 deleted");
    after(10).await;
    assert_eq!(world.describe_pod("ignores").await, "Failed not ready Error 137/0 deleted");
    let revision = world.server.revision();
    after(60).await;
    assert_eq!(world.server.revision(), revision, "nothing is written any more");
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    world.pods.patch("ends", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(world.describe_pod("ends").await, "gone");
}

#[tokio::test(start_paused = true)]
async fn second_delete_shortens_the_grace_period() {
    let world = KubeletWorld::new();
    world.create("a", json!({ "kubelet.kctl.dev/ignore-sigterm": "true" })).await;
    after(3).await;
    world.pods.delete("a", &DeleteParams::default()).await.unwrap();
    after(2).await;
    world.pods.delete("a", &DeleteParams::default().grace_period(5)).await.unwrap();
    after(3).await;
    assert_eq!(world.describe_pod("a").await, "Running ready runs/0 runs/0 deleted");
    after(3).await;
    assert_eq!(world.describe_pod("a").await, "gone");
}

#[tokio::test(start_paused = true)]
async fn removed_finalizer_does_not_extend_the_grace_period() {
    let world = KubeletWorld::new();
    let pod = json!({
        "metadata": {
            "name": "a", "finalizers": ["example.com/a"], "labels": { "kubelet.kctl.dev/ignore-sigterm": "true" },
        },
        "spec": { "terminationGracePeriodSeconds": 10, "containers": [{ "name": "c", "image": "i" }] },
    });
    world.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    after(2).await;
    world.pods.delete("a", &DeleteParams::default()).await.unwrap();
    after(5).await;
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    world.pods.patch("a", &PatchParams::default(), &patch).await.unwrap();
    after(2).await;
    assert_eq!(world.describe_pod("a").await, "Running ready runs/0 deleted");
    after(3).await;
    assert_eq!(world.describe_pod("a").await, "gone");
}

#[tokio::test(start_paused = true)]
async fn gated_pod_is_scheduled_without_its_gates() {
    let world = KubeletWorld::new();
    let pod = json!({
        "metadata": { "name": "gated" },
        "spec": { "schedulingGates": [{ "name": "example.com/quota" }], "containers": [{ "name": "c", "image": "i" }] },
    });
    world.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    after(10).await;
    let pod = world.pods.get("gated").await.unwrap();
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Pending"));
    assert_eq!(pod.spec.unwrap().node_name, None);
    let patch = Patch::Merge(json!({ "spec": { "schedulingGates": null } }));
    world.pods.patch("gated", &PatchParams::default(), &patch).await.unwrap();
    after(2).await;
    assert_eq!(world.describe_pod("gated").await, "Running ready runs/0");
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_paced() {
    /// Number of requests after which the server answers with errors, so that a busy loop ends.
    const WATCHES_MAX: usize = 1_000;
    for path in ["/api/v1/pods", "/api/v1/nodes"] {
        let (server, n_watches) = (ApiServer::new(), Arc::<AtomicUsize>::default());
        let (client, counted) = (Client::new(server.service(), "default"), n_watches.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let client = client.clone();
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let ends = is_watch && request.uri().path() == path;
            let n = if ends { counted.fetch_add(1, Ordering::Relaxed) } else { 0 };
            async move {
                if n > WATCHES_MAX {
                    return Err(tower::BoxError::from("too many watches"));
                }
                if ends {
                    return Ok(http::Response::new(Body::from(Vec::<u8>::new())));
                }
                Ok(client.send(request).await?)
            }
        });
        let kubelet = Kubelet::with_clock(Client::new(service, "default"), "kctl-node", Clock::Server(server.clone()));
        let running = tokio::spawn(kubelet.run());
        let pods = Api::<Pod>::default_namespaced(Client::new(server.service(), "default"));
        let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        after(15).await;
        running.abort();
        let n_watches = n_watches.load(Ordering::Relaxed);
        assert!((10..=20).contains(&n_watches), "{path}: {n_watches} watches in 15 seconds");
        let phase = pods.get("a").await.unwrap().status.and_then(|status| status.phase);
        assert_eq!(phase.as_deref(), Some("Running"), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn ready_node_loses_not_ready_taint() {
    let world = KubeletWorld::new();
    after(0).await;
    let node = world.nodes.get("kctl-node").await.unwrap();
    assert_eq!(node.spec.unwrap_or_default().taints.unwrap_or_default(), []);
}

struct KubeletWorld {
    server: ApiServer,
    pods: Api<Pod>,
    nodes: Api<Node>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for KubeletWorld {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl KubeletWorld {
    fn new() -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let task = tokio::spawn(Kubelet::for_server(&server).run());
        Self { server, pods: Api::default_namespaced(client.clone()), nodes: Api::all(client), task }
    }

    async fn create(&self, name: &str, annotations: Value) {
        let pod = json!({
            "metadata": { "name": name, "annotations": annotations },
            "spec": { "containers": [{ "name": "c", "image": "i" }, { "name": "d", "image": "i" }] },
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    /// Formats the state of a Pod: its phase, its readiness, and the state and restarts of each container.
    async fn describe_pod(&self, name: &str) -> String {
        let Some(pod) = self.pods.get_opt(name).await.unwrap() else { return "gone".into() };
        let status = pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.iter().flatten().map(|container| {
            let state = container.state.clone().unwrap_or_default();
            let what = match (state.running, state.waiting, state.terminated) {
                (Some(_), ..) => "runs".to_owned(),
                (_, Some(waiting), _) => waiting.reason.unwrap_or_default(),
                (.., Some(ended)) => format!("{} {}", ended.reason.unwrap_or_default(), ended.exit_code),
                _ => String::new(),
            };
            format!("{what}/{}", container.restart_count)
        });
        let containers: Vec<String> = containers.collect();
        let ready = if not_ready_because(&pod).is_none() && containers.iter().any(|one| one.starts_with("runs")) {
            "ready"
        } else {
            "not ready"
        };
        let deleted = if pod.metadata.deletion_timestamp.is_some() { " deleted" } else { "" };
        format!("{} {ready} {}{deleted}", status.phase.unwrap_or_default(), containers.join(" "))
    }
}

async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds) + Duration::from_millis(500)).await;
}

/// The expected state after a number of seconds.
type PhaseAt = (u64, &'static str);

/// Checks the states of Pods with these annotations, at times in seconds after their creation.
#[tokio::test(start_paused = true)]
async fn pods_follow_their_stages() {
    const PREFIX: &str = "kubelet.kctl.dev/";
    let cases: &[(&str, Value, &[PhaseAt])] = &[
        ("usual", json!({}), &[(0, "Pending not ready "), (1, "Running ready runs/0 runs/0")]),
        (
            "slow",
            json!({ "stage": "slow", "delay": "20s" }),
            &[(19, "Pending not ready ContainerCreating/0 ContainerCreating/0"), (20, "Running ready runs/0 runs/0")],
        ),
        (
            "unpullable",
            json!({ "stage": "unpullable" }),
            &[(600, "Pending not ready ImagePullBackOff/0 ImagePullBackOff/0")],
        ),
        ("unready", json!({ "stage": "unready" }), &[(600, "Running not ready runs/0 runs/0")]),
        (
            "ready-later",
            json!({ "stage": "unready", "delay": "1m" }),
            &[(60, "Running not ready runs/0 runs/0"), (61, "Running ready runs/0 runs/0")],
        ),
        (
            "succeeding",
            json!({ "stage": "succeeding", "delay": "5s" }),
            &[(5, "Running ready runs/0 runs/0"), (6, "Succeeded not ready Completed 0/0 Completed 0/0")],
        ),
        (
            "failing",
            json!({ "stage": "failing", "exit-code": "137", "reason": "OOMKilled", "container-name": "c" }),
            &[(4, "Failed not ready OOMKilled 137/0 Completed 0/0")],
        ),
        (
            "crash-looping",
            json!({ "stage": "crash-looping", "container-name": "c" }),
            &[
                (2, "Running not ready CrashLoopBackOff/1 runs/0"),
                (12, "Running ready runs/1 runs/0"),
                (13, "Running not ready CrashLoopBackOff/2 runs/0"),
                (32, "Running not ready CrashLoopBackOff/2 runs/0"),
                (33, "Running ready runs/2 runs/0"),
                (500, "Running not ready CrashLoopBackOff/6 runs/0"),
            ],
        ),
    ];
    for (name, annotations, expected_phases) in cases {
        let world = KubeletWorld::new();
        let annotations = annotations.as_object().unwrap().iter();
        let annotations: serde_json::Map<String, Value> =
            annotations.map(|(name, value)| (format!("{PREFIX}{name}"), value.clone())).collect();
        world.create(name, annotations.into()).await;
        let made = Instant::now();
        for (seconds, expected) in *expected_phases {
            tokio::time::sleep_until(made + Duration::from_millis(seconds * 1000 + 500)).await;
            assert_eq!(world.describe_pod(name).await, *expected, "{name} after {seconds} seconds");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn container_that_becomes_ready_keeps_its_start() {
    let world = KubeletWorld::new();
    world.create("a", json!({ "kubelet.kctl.dev/stage": "unready", "kubelet.kctl.dev/delay": "30s" })).await;
    let started = async || {
        let status = world.pods.get("a").await.unwrap().status.unwrap().container_statuses.unwrap().remove(0);
        (status.ready, status.state.unwrap().running.unwrap().started_at.unwrap())
    };
    after(2).await;
    let (ready, first) = started().await;
    assert!(!ready);
    after(60).await;
    assert_eq!(started().await, (true, first));
}

#[tokio::test(start_paused = true)]
async fn crash_looping_pods_are_not_pending() {
    let world = KubeletWorld::new();
    let kubelet = Kubelet::for_server(&world.server);
    tokio::spawn(kubelet.clone().run());
    world.create("a", json!({ "kubelet.kctl.dev/stage": "crash-looping" })).await;
    after(60).await;
    assert_eq!(kubelet.pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn pods_of_lost_node_are_terminating_but_remain() {
    let world = KubeletWorld::new();
    world.create("a", json!({})).await;
    after(2).await;
    let stage = |stage: Value| Patch::Merge(json!({ "metadata": { "labels": { "kubelet.kctl.dev/stage": stage } } }));
    world.nodes.patch("kctl-node", &PatchParams::default(), &stage("lost".into())).await.unwrap();
    after(1).await;
    assert_eq!(world.describe_pod("a").await, "Running not ready runs/0 runs/0");
    world.create("b", json!({})).await;
    let node = world.nodes.get("kctl-node").await.unwrap();
    assert_eq!(NodeState::from_taints(&node), NodeState::Lost);
    let conditions = node.status.unwrap().conditions.unwrap();
    let ready: Vec<&str> =
        conditions.iter().filter(|one| one.type_ == "Ready").map(|one| one.status.as_str()).collect();
    assert_eq!(ready, ["Unknown"]);
    // The default toleration of every Pod expires after five minutes.
    after(290).await;
    assert_eq!(world.describe_pod("a").await, "Running not ready runs/0 runs/0");
    after(20).await;
    assert_eq!(world.describe_pod("a").await, "Running not ready runs/0 runs/0 deleted");
    after(600).await;
    assert_eq!(world.describe_pod("a").await, "Running not ready runs/0 runs/0 deleted");
    assert_eq!(world.describe_pod("b").await, "Pending not ready ");
    world.nodes.patch("kctl-node", &PatchParams::default(), &stage(Value::Null)).await.unwrap();
    after(60).await;
    assert_eq!(world.describe_pod("a").await, "gone");
    assert_eq!(world.describe_pod("b").await, "Running ready runs/0 runs/0");
    let node = world.nodes.get("kctl-node").await.unwrap();
    assert_eq!(NodeState::from_taints(&node), NodeState::Ready);
}

/// The second patch of a lost node would write its taints.
#[tokio::test(start_paused = true)]
async fn interrupted_write_of_node_state_is_repeated() {
    let (server, faults) = (ApiServer::new(), Faults::seeded(0));
    let client = Client::new(server.faulty(User::admin(), &faults.connection("kubelet")), "default");
    let task = tokio::spawn(Kubelet::with_clock(client, "kctl-node", Clock::Server(server.clone())).run());
    let nodes = Api::<Node>::all(Client::new(server.service(), "default"));
    after(1).await;
    let reset = RequestFault::Reset(Moment::Before);
    let second =
        Rule::request(reset, |request| request.verb == "patch" && request.resource.starts_with("nodes")).nth(2);
    faults.add(second);
    let lost = Patch::Merge(json!({ "metadata": { "labels": { "kubelet.kctl.dev/stage": "lost" } } }));
    nodes.patch("kctl-node", &PatchParams::default(), &lost).await.unwrap();
    after(5).await;
    task.abort();
    assert_eq!(faults.counts()["connection reset"], 1);
    let node = nodes.get("kctl-node").await.unwrap();
    assert_eq!(NodeState::from_taints(&node), NodeState::Lost);
    let conditions = node.status.unwrap().conditions.unwrap();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "Unknown");
}

#[tokio::test(start_paused = true)]
async fn pods_are_ready_again_when_their_node_returns() {
    let world = KubeletWorld::new();
    world.create("a", json!({})).await;
    after(2).await;
    let stage =
        |stage: Value| Patch::Merge(json!({ "metadata": { "annotations": { "kubelet.kctl.dev/stage": stage } } }));
    world.nodes.patch("kctl-node", &PatchParams::default(), &stage("lost".into())).await.unwrap();
    after(60).await;
    assert_eq!(world.describe_pod("a").await, "Running not ready runs/0 runs/0");
    world.nodes.patch("kctl-node", &PatchParams::default(), &stage(Value::Null)).await.unwrap();
    after(2).await;
    assert_eq!(world.describe_pod("a").await, "Running ready runs/0 runs/0");
}

#[tokio::test(start_paused = true)]
async fn kubelet_survives_a_compacted_history() {
    let world = KubeletWorld::new();
    after(2).await;
    world.create("a", json!({})).await;
    after(2).await;
    world.server.compact();
    // Watches end, and the next ones begin.
    after(900).await;
    world.create("b", json!({})).await;
    after(3).await;
    let pods = [world.describe_pod("a").await, world.describe_pod("b").await];
    assert_eq!(pods[0], pods[1], "it runs, too");
}

#[tokio::test(start_paused = true)]
async fn kubelet_survives_an_endless_grace_period() {
    let world = KubeletWorld::new();
    world.create("a", json!({ "kubelet.kctl.dev/ignore-sigterm": "true" })).await;
    after(3).await;
    let long = http::Request::delete(format!("/api/v1/namespaces/default/pods/a?gracePeriodSeconds={}", i64::MAX));
    let client = Client::new(world.server.service(), "default");
    client.request_text(long.body(Vec::new()).unwrap()).await.unwrap();
    world.create("b", json!({})).await;
    after(60).await;
    assert_eq!(world.describe_pod("a").await, "Running ready runs/0 runs/0 deleted");
    assert_eq!(world.describe_pod("b").await, "Running ready runs/0 runs/0");
}
