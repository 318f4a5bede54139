//! Tests the operator on an embedded API server, with paused time. The module `cluster` tests it on a real API server.

mod cluster;
mod role;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use kctl::{
    apiserver::RequestRecord,
    k8s::api::events::v1::Event,
    kube::{
        Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::TestServer,
};

use crate::{
    app,
    controller::{HASH_ANNOTATION, ensure_current},
    policy::{RestartPolicy, RestartPolicySpec, RestartPolicyStatus},
    registry::{Call, Registry, RegistryError},
};

const NAMESPACE: &str = "default";
/// The name of the policy in the registry.
const SERVICE: &str = "default/web";

/// A registry that fails on demand and records its calls.
#[derive(Default)]
struct FlakyRegistry(Mutex<Known>);

#[derive(Default)]
struct Known {
    revisions: BTreeMap<String, String>,
    calls: Vec<String>,
    /// Number of upcoming calls that fail.
    failures: u32,
}

impl FlakyRegistry {
    fn fail(&self, calls: u32) {
        self.0.lock().unwrap().failures = calls;
    }

    fn revision(&self, service: &str) -> Option<String> {
        self.0.lock().unwrap().revisions.get(service).cloned()
    }

    fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().calls.clone()
    }

    fn respond(&self, call: &str, service: &str, revision: Option<&str>) -> Result<(), RegistryError> {
        let mut known = self.0.lock().unwrap();
        let failed = known.failures > 0;
        known.failures = known.failures.saturating_sub(1);
        known.calls.push(format!("{call} {service}: {}", if failed { "failed" } else { "done" }));
        if failed {
            return Err(RegistryError { service: service.into() });
        }
        match revision {
            Some(revision) => known.revisions.insert(service.into(), revision.into()),
            None => known.revisions.remove(service),
        };
        Ok(())
    }
}

impl Registry for FlakyRegistry {
    fn register<'a>(&'a self, service: &'a str, revision: &'a str) -> Call<'a> {
        Box::pin(async move { self.respond("register", service, Some(revision)) })
    }

    fn unregister<'a>(&'a self, service: &'a str) -> Call<'a> {
        Box::pin(async move { self.respond("unregister", service, None) })
    }
}

struct World {
    server: TestServer,
    registry: Arc<FlakyRegistry>,
}

impl World {
    async fn start() -> Self {
        let registry = Arc::new(FlakyRegistry::default());
        let server = TestServer::start(app(registry.clone())).await.unwrap();
        Self { server, registry }
    }

    /// Starts a converged policy of three pods with its `ConfigMap`.
    async fn start_converged() -> Self {
        let world = Self::start().await;
        world.api().create(&PostParams::default(), &config("web-config", "hello")).await.unwrap();
        world.api().create(&PostParams::default(), &web(3)).await.unwrap();
        world.idle().await;
        world
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kctl::kube::Resource<Scope = kctl::k8s::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.server.client(), NAMESPACE)
    }

    async fn idle(&self) {
        self.server.idle().await.unwrap();
    }

    async fn change(&self, config: &str, data: &str) {
        let patch = Patch::Merge(kctl::json!({ "data": { "GREETING": data } }));
        self.api::<ConfigMap>().patch(config, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn status(&self) -> RestartPolicyStatus {
        self.api::<RestartPolicy>().get("web").await.unwrap().status.unwrap_or_default()
    }

    async fn pods(&self) -> Vec<Pod> {
        self.api::<Pod>().list(&ListParams::default()).await.unwrap().items
    }

    async fn reasons_of_events(&self) -> Vec<String> {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        events.into_iter().filter_map(|event| event.reason).collect()
    }

    /// Returns the writes of the operator and the kubelet, one line each.
    fn writes(&self) -> Vec<String> {
        let reads = ["get", "list", "watch"];
        let requests = self.server.server().requests();
        let writes = requests.iter().filter(|request| !reads.contains(&request.verb));
        writes.filter(|request| by_operator(request) || request.resource == "pods/status").map(words).collect()
    }
}

fn by_operator(request: &RequestRecord) -> bool {
    request.user.ends_with(":config-restarter")
}

fn words(request: &RequestRecord) -> String {
    format!("{} {}", request.verb, request.resource)
}

fn config(name: &str, data: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some([("GREETING".to_owned(), data.to_owned())].into()),
        ..ConfigMap::default()
    }
}

fn web(replicas: i32) -> RestartPolicy {
    let template = PodTemplateSpec {
        metadata: None,
        spec: Some(PodSpec {
            containers: vec![Container { name: "web".into(), image: Some("nginx".into()), ..Container::default() }],
            ..PodSpec::default()
        }),
    };
    RestartPolicy::new("web", RestartPolicySpec { config_map_name: "web-config".into(), replicas, template })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn condition<'a>(status: &'a RestartPolicyStatus, kind: &str) -> (&'a str, &'a str) {
    let condition = status.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
    (&condition.status, &condition.reason)
}

fn hashes(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().map(|pod| pod.annotations()[HASH_ANNOTATION].clone()).collect()
}

fn names(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_appear_and_become_ready() {
    let world = World::start_converged().await;
    let (status, pods) = (world.status().await, world.pods().await);
    assert_eq!((status.replicas, status.ready, status.updated), (3, 3, 3));
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(hashes(&pods), status.config_hash.clone().into_iter().collect());
    assert_eq!(condition(&status, "ConfigFound"), ("True", "Found"));
    assert_eq!(condition(&status, "Ready"), ("True", "Complete"));
    assert_eq!(condition(&status, "Registered"), ("True", "RevisionRegistered"));
    assert_eq!(world.registry.revision(SERVICE), status.config_hash);
    let from = pods[0].spec.as_ref().unwrap().containers[0].env_from.as_ref().unwrap();
    assert_eq!(from[0].config_map_ref.as_ref().unwrap().name, "web-config");
}

#[tokio::test(start_paused = true)]
async fn config_change_replaces_pods_one_at_a_time() {
    let world = World::start_converged().await;
    let (before, hash) = (names(&world.pods().await), world.status().await.config_hash);
    let n_before = world.writes().len();
    world.change("web-config", "good morning").await;
    world.idle().await;

    let (status, pods) = (world.status().await, world.pods().await);
    assert!(names(&pods).is_disjoint(&before), "{before:?} are replaced by {:?}", names(&pods));
    assert_ne!(status.config_hash, hash);
    assert_eq!(hashes(&pods), status.config_hash.clone().into_iter().collect());
    assert_eq!((status.ready, status.updated), (3, 3));
    assert_eq!(world.registry.revision(SERVICE), status.config_hash);

    let writes = world.writes().split_off(n_before);
    let pod_writes: Vec<&str> = writes.iter().map(String::as_str).filter(|write| write.contains("pods")).collect();
    // The next pod is replaced only after the kubelet has made the previous one ready.
    assert_eq!(pod_writes, ["delete pods", "create pods", "patch pods/status"].repeat(3));
    let events = world.reasons_of_events().await;
    assert_eq!(events.iter().filter(|reason| *reason == "Replacing").count(), 3, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn rolling_restart_keeps_all_but_one_ready() {
    let world = World::start_converged().await;
    world.change("web-config", "good morning").await;
    let mut fewest = usize::MAX;
    // Five seconds cover three pod starts of one second each. The step of 10 ms is shorter than a start.
    for _ in 0..500 {
        let pods = world.pods().await;
        let serving = pods.iter().filter(|pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none());
        fewest = fewest.min(serving.count());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((fewest, world.status().await.updated), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn config_change_during_rollout_is_rolled_out() {
    let world = World::start_converged().await;
    world.change("web-config", "wrong").await;
    // The first new pod exists, but is not ready yet.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let status = world.status().await;
    assert_eq!((status.replicas, status.ready, status.updated), (3, 2, 1));
    assert_eq!(condition(&status, "Ready"), ("False", "Progressing"));
    world.change("web-config", "right").await;
    world.idle().await;
    let (status, pods) = (world.status().await, world.pods().await);
    assert_eq!((pods.len(), status.ready, status.updated), (3, 3, 3));
    assert_eq!(hashes(&pods), status.config_hash.into_iter().collect());
}

#[tokio::test(start_paused = true)]
async fn unused_config_map_causes_no_reconcile() {
    let world = World::start_converged().await;
    let before = world.writes();
    world.api().create(&PostParams::default(), &config("other", "hello")).await.unwrap();
    world.change("other", "good morning").await;
    world.api::<ConfigMap>().delete("other", &DeleteParams::default()).await.unwrap();
    world.idle().await;
    assert_eq!(world.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn config_map_in_another_namespace_causes_no_roll() {
    let world = World::start_converged().await;
    let before = world.writes();
    let elsewhere = Api::<ConfigMap>::namespaced(world.server.client(), "kube-public");
    elsewhere.create(&PostParams::default(), &config("web-config", "other")).await.unwrap();
    world.idle().await;
    assert_eq!(world.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn pods_follow_replicas() {
    let world = World::start_converged().await;
    for replicas in [1, 4, 0] {
        let patch = Patch::Merge(kctl::json!({ "spec": { "replicas": replicas } }));
        world.api::<RestartPolicy>().patch("web", &PatchParams::default(), &patch).await.unwrap();
        world.idle().await;
        assert_eq!((world.status().await.ready, world.pods().await.len()), (replicas, replicas.try_into().unwrap()));
    }
    assert_eq!(world.status().await.observed_generation, Some(4));
}

#[tokio::test(start_paused = true)]
async fn deleted_policy_remains_until_the_registry_forgot_it() {
    let world = World::start_converged().await;
    world.registry.fail(3);
    world.api::<RestartPolicy>().delete("web", &DeleteParams::default()).await.unwrap();
    // The three failures are retried after 100, 200 and 400 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(world.api::<RestartPolicy>().get_opt("web").await.unwrap().is_some());
    assert_eq!(world.pods().await.len(), 3);

    world.idle().await;
    let calls = world.registry.calls();
    let unregistered: Vec<&str> =
        calls.iter().filter_map(|call| call.strip_prefix("unregister default/web: ")).collect();
    assert_eq!(unregistered, ["failed", "failed", "failed", "done"]);
    assert_eq!(world.registry.revision(SERVICE), None);
    assert!(world.api::<RestartPolicy>().get_opt("web").await.unwrap().is_none());
    assert_eq!(world.pods().await.len(), 0);
    assert!(world.reasons_of_events().await.contains(&"UnregisterFailed".to_owned()));
}

#[test]
fn only_the_current_policy_is_registered() {
    let mut policy = web(1);
    policy.metadata.uid = Some("a".into());
    assert!(ensure_current(&policy, &policy).is_ok());
    let mut deleted = policy.clone();
    deleted.metadata.deletion_timestamp = Some(kctl::from_json(kctl::json!("2026-01-01T00:00:00Z")).unwrap());
    let mut replaced = policy.clone();
    replaced.metadata.uid = Some("b".into());
    for newest in [deleted, replaced] {
        let error = ensure_current(&policy, &newest).unwrap_err().to_string();
        assert!(error.starts_with("policy web is being deleted, or was replaced"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_registration_is_retried_and_shown() {
    let world = World::start().await;
    world.registry.fail(1000);
    world.api().create(&PostParams::default(), &config("web-config", "hello")).await.unwrap();
    world.api().create(&PostParams::default(), &web(2)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let status = world.status().await;
    assert_eq!((status.ready, status.registered_hash.as_deref()), (2, None));
    assert_eq!(condition(&status, "Registered"), ("False", "RegistryFailed"));

    world.registry.fail(0);
    world.idle().await;
    assert_eq!(condition(&world.status().await, "Registered"), ("True", "RevisionRegistered"));
}

#[tokio::test(start_paused = true)]
async fn missing_config_map_sets_condition_until_created() {
    let world = World::start().await;
    world.api().create(&PostParams::default(), &web(2)).await.unwrap();
    world.idle().await;
    let status = world.status().await;
    assert_eq!(condition(&status, "ConfigFound"), ("False", "Missing"));
    assert_eq!((status.replicas, status.config_hash.as_deref()), (0, None));
    assert_eq!(world.reasons_of_events().await, ["ConfigMissing"]);

    world.api().create(&PostParams::default(), &config("web-config", "hello")).await.unwrap();
    world.idle().await;
    let status = world.status().await;
    assert_eq!(condition(&status, "ConfigFound"), ("True", "Found"));
    assert_eq!((status.ready, status.updated), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn pods_outlive_their_config_map() {
    let world = World::start_converged().await;
    let before = (names(&world.pods().await), world.status().await.config_hash);
    world.api::<ConfigMap>().delete("web-config", &DeleteParams::default()).await.unwrap();
    world.idle().await;
    let status = world.status().await;
    assert_eq!(condition(&status, "ConfigFound"), ("False", "Missing"));
    assert_eq!((names(&world.pods().await), status.config_hash), before);

    world.api().create(&PostParams::default(), &config("web-config", "hello")).await.unwrap();
    world.idle().await;
    // The data is the same as before, so no Pod is replaced.
    assert_eq!(names(&world.pods().await), before.0);
}

#[tokio::test(start_paused = true)]
async fn nothing_more_is_written_when_all_is_done() {
    let world = World::start_converged().await;
    let before = world.writes();
    let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "looked": "at" } } }));
    world.api::<ConfigMap>().patch("web-config", &PatchParams::default(), &label).await.unwrap();
    world.api::<RestartPolicy>().patch("web", &PatchParams::default(), &label).await.unwrap();
    for pod in world.pods().await {
        world.api::<Pod>().patch(&pod.name_any(), &PatchParams::default(), &label).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    world.idle().await;
    assert_eq!(world.writes(), before);
}
