//! Tests the operator on the embedded API server, with simulated time and without a cluster.

use std::time::Duration;

use kctl::{
    json,
    k8s::api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        events::v1::Event,
    },
    kube::{
        Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::TestServer,
};
use podset::PodSet;

const WEB: &str = include_str!("../../web.yaml");

struct World {
    server: TestServer,
    sets: Api<PodSet>,
    pods: Api<Pod>,
}

impl World {
    async fn with_web() -> Self {
        let server = TestServer::start(podset::app()).await.unwrap();
        let world = Self {
            sets: Api::default_namespaced(server.client()),
            pods: Api::default_namespaced(server.client()),
            server,
        };
        world.sets.create(&PostParams::default(), &kctl::from_yaml(WEB).unwrap()).await.unwrap();
        world.idle().await;
        world
    }

    async fn idle(&self) {
        self.server.idle().await.unwrap();
    }

    async fn pods(&self) -> Vec<Pod> {
        self.pods.list(&ListParams::default()).await.unwrap().items
    }

    async fn alive(&self) -> Vec<Pod> {
        let mut pods = self.pods().await;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        pods
    }

    /// Returns the reason and the message of the condition `ReplicaFailure`.
    async fn failure(&self) -> Option<(String, String)> {
        let status = self.sets.get("web").await.unwrap().status.unwrap();
        let failure = status.conditions.into_iter().find(|condition| condition.type_ == "ReplicaFailure");
        failure.map(|condition| (condition.reason, condition.message))
    }

    /// Returns the `resourceVersion` of the set.
    async fn revision(&self) -> Option<String> {
        self.sets.get("web").await.unwrap().metadata.resource_version
    }

    async fn patch(&self, patch: kctl::Json) {
        self.sets.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        self.idle().await;
    }

    async fn status(&self) -> podset::PodSetStatus {
        self.sets.get("web").await.unwrap().status.unwrap()
    }

    fn writes(&self) -> usize {
        let requests = self.server.server().requests();
        let own = requests.iter().filter(|request| request.user.starts_with("system:serviceaccount:"));
        own.filter(|request| !["get", "list", "watch"].contains(&request.verb)).count()
    }
}

fn owner(pod: &Pod) -> Option<String> {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())
}

#[tokio::test(start_paused = true)]
async fn three_controlled_pods_become_ready() {
    let world = World::with_web().await;
    let set = world.sets.get("web").await.unwrap();
    let pods = world.pods().await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| owner(pod) == set.metadata.uid));
    let status = set.status.unwrap();
    assert_eq!((status.replicas, status.ready_replicas, status.observed_generation), (3, 3, 1));
    assert_eq!(status.selector, "app=web");
}

#[tokio::test(start_paused = true)]
async fn scale_subresource_is_followed_up_and_down() {
    let world = World::with_web().await;
    for replicas in [12, 2, 0] {
        let scale = Patch::Merge(kctl::json!({ "spec": { "replicas": replicas } }));
        world.sets.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
        world.idle().await;
        assert_eq!(world.alive().await.len(), usize::try_from(replicas).unwrap());
        assert_eq!(world.status().await.ready_replicas, replicas);
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_is_replaced_once() {
    let world = World::with_web().await;
    let first = world.pods().await[0].name_any();
    world.pods.delete(&first, &DeleteParams::default()).await.unwrap();
    world.idle().await;
    let pods = world.pods().await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod.name_any() != first));
    let creates = world.server.server().requests();
    assert_eq!(creates.iter().filter(|r| r.verb == "create" && r.resource == "pods").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn matching_orphan_is_adopted_and_surplus_pod_deleted() {
    let world = World::with_web().await;
    let mut orphan = world.pods().await[0].clone();
    orphan.metadata = ObjectMeta {
        name: Some("orphan".into()),
        labels: Some([("app".to_owned(), "web".to_owned())].into()),
        ..ObjectMeta::default()
    };
    orphan.spec.as_mut().unwrap().node_name = None;
    world.pods.create(&PostParams::default(), &orphan).await.unwrap();
    world.idle().await;
    assert_eq!(world.alive().await.len(), 3);
    let adopted = world.server.server().requests().into_iter().any(|r| r.verb == "patch" && r.name == "orphan");
    assert!(adopted);
}

#[tokio::test(start_paused = true)]
async fn pod_that_stops_matching_is_released_and_replaced() {
    let world = World::with_web().await;
    let name = world.pods().await[0].name_any();
    let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "app": "other" } } }));
    world.pods.patch(&name, &PatchParams::default(), &label).await.unwrap();
    world.idle().await;
    let released = world.pods.get(&name).await.unwrap();
    assert_eq!(owner(&released), None);
    assert_eq!(world.pods().await.len(), 4);
    assert_eq!(world.status().await.replicas, 3);
}

#[tokio::test(start_paused = true)]
async fn failed_pod_is_replaced() {
    let world = World::with_web().await;
    let name = world.pods().await[0].name_any();
    let failed = Patch::Merge(kctl::json!({ "status": { "phase": "Failed", "conditions": null } }));
    world.pods.patch_status(&name, &PatchParams::default(), &failed).await.unwrap();
    world.idle().await;
    assert_eq!(world.pods().await.len(), 4);
    assert_eq!(world.status().await.ready_replicas, 3);
}

#[tokio::test(start_paused = true)]
async fn pods_go_with_their_set() {
    let world = World::with_web().await;
    world.sets.delete("web", &DeleteParams::default()).await.unwrap();
    world.idle().await;
    assert_eq!(world.pods().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn settled_state_is_not_written_again() {
    let world = World::with_web().await;
    let before = world.writes();
    world.patch(kctl::json!({ "metadata": { "annotations": { "a": "b" } } })).await;
    assert_eq!(world.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn selector_unlike_the_template_is_reported_and_inert() {
    let world = World::with_web().await;
    world.patch(kctl::json!({ "spec": { "replicas": 5, "selector": { "matchLabels": { "app": "other" } } } })).await;
    assert_eq!(world.pods().await.len(), 3);
    let events = Api::<Event>::default_namespaced(world.server.client()).list(&ListParams::default()).await.unwrap();
    let failed = events.items.into_iter().find(|event| event.reason.as_deref() == Some("ReconcileFailed"));
    let note = failed.and_then(|event| event.note).unwrap_or_default();
    assert!(note.contains("spec.selector does not match the labels of spec.template"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn runs_of_one_seed_are_equal() {
    let trace = async || World::with_web().await.server.server().requests();
    let first = trace().await;
    assert!(first.len() > 10);
    assert_eq!(first, trace().await);
}

/// A `ValidatingAdmissionPolicy` that denies an operation on pods.
const DENIAL: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: deny }
spec:
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [OPERATION], resources: [pods] }]
  validations: [{ expression: "false", message: "no OPERATION today" }]
"#;
const BINDING: &str = "{ metadata: { name: deny }, spec: { policyName: deny, validationActions: [Deny] } }";

#[tokio::test(start_paused = true)]
async fn failed_pod_writes_set_a_condition_until_success() {
    for (operation, replicas, reason) in [("CREATE", 5, "FailedCreate"), ("DELETE", 1, "FailedDelete")] {
        let world = World::with_web().await;
        assert_eq!(world.failure().await, None);
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(world.server.client());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.server.client());
        let with = PostParams::default();
        policies.create(&with, &kctl::from_yaml(&DENIAL.replace("OPERATION", operation)).unwrap()).await.unwrap();
        bindings.create(&with, &kctl::from_yaml(BINDING).unwrap()).await.unwrap();
        let more = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        world.sets.patch("web", &PatchParams::default(), &more).await.unwrap();
        // The operator keeps retrying and never becomes idle, so the test waits for a fixed time.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (found_reason, message) = world.failure().await.unwrap();
        assert_eq!(found_reason, reason, "{message}");
        assert!(message.contains(&format!("no {operation} today")), "{message}");
        assert_eq!(world.alive().await.len(), 3, "{operation}");
        let revision = world.revision().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(world.revision().await, revision, "retries write nothing: {operation}");
        bindings.delete("deny", &DeleteParams::default()).await.unwrap();
        world.idle().await;
        assert_eq!(world.failure().await, None);
        assert_eq!(world.alive().await.len(), replicas, "{operation}");
    }
}
