//! Tests kinds that were unknown when the program was compiled.

use kctl::{
    json,
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams},
        core::{ApiResource, DynamicObject, GroupVersionKind},
    },
    prelude::*,
};
use multicluster::{PropagationPolicy, ResourceBinding, Work};

use crate::world::{Fleet, apply};

const DEFINITION: &str = include_str!("workload-crd.yaml");
pub(crate) const WORKLOAD: &str = "apiVersion: workload.example.io/v1alpha1\nkind: Workload\nmetadata: { name: batch }\nspec: { replicas: 3, image: 'batch:1' }";
pub(crate) const WORKLOADS: &str = "apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: workloads }\nspec: { resourceSelectors: [{ apiVersion: workload.example.io/v1alpha1, kind: Workload }] }";
pub(crate) const BINDING: &str = "workload.workload.example.io-batch";

pub(crate) fn workloads(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("workload.example.io", "v1alpha1", "Workload");
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// Installs the CRD, and returns once the API server serves it.
pub(crate) async fn define(client: &Client) {
    apply(client, DEFINITION).await;
    while workloads(client).list(&ListParams::default()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) async fn undefine(client: &Client) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    definitions.delete("workloads.workload.example.io", &DeleteParams::default()).await.unwrap();
}

async fn image(client: &Client) -> Option<String> {
    // The request also fails while the kind is not served yet. Then the object does not exist either.
    let found = workloads(client).get_opt("batch").await.unwrap_or_default()?;
    found.data["spec"]["image"].as_str().map(str::to_owned)
}

impl Fleet {
    async fn images(&self) -> [Option<String>; 2] {
        [image(&self.members[0]).await, image(&self.members[1]).await]
    }

    async fn policy_message(&self, policy: &str) -> String {
        let policy = self.api::<PropagationPolicy>().get(policy).await.unwrap();
        policy.status.unwrap_or_default().message
    }

    async fn applied_message_of(&self, work: &str) -> String {
        let work = self.api::<Work>().get_opt(work).await.unwrap();
        work.and_then(|work| work.status).map(|status| status.applied_message).unwrap_or_default()
    }

    /// Installs the CRD on all servers, and applies a Workload and a policy that distributes it.
    pub(crate) async fn with_workload() -> Self {
        let fleet = Self::new().await;
        for server in std::iter::once(&fleet.home).chain(&fleet.members) {
            define(server).await;
        }
        fleet.apply(crate::world::CLUSTERS).await;
        fleet.apply(WORKLOADS).await;
        fleet.apply(WORKLOAD).await;
        fleet
            .until("it is there", async || fleet.images().await == [Some("batch:1".into()), Some("batch:1".into())])
            .await;
        fleet
    }
}

#[tokio::test(start_paused = true)]
async fn custom_kind_is_propagated_aggregated_and_deleted() {
    let fleet = Fleet::with_workload().await;
    let change = Patch::Merge(json!({ "spec": { "image": "batch:2" } }));
    workloads(&fleet.home).patch("batch", &PatchParams::default(), &change).await.unwrap();
    fleet
        .until("a change follows", async || fleet.images().await == [Some("batch:2".into()), Some("batch:2".into())])
        .await;
    let drift = Patch::Merge(json!({ "spec": { "image": "drifted" } }));
    workloads(&fleet.members[0]).patch("batch", &PatchParams::default(), &drift).await.unwrap();
    fleet.until("it is set back", async || fleet.images().await[0] == Some("batch:2".into())).await;
    let ready = Patch::Merge(json!({ "status": { "readyReplicas": 3 } }));
    workloads(&fleet.members[1]).patch_status("batch", &PatchParams::default(), &ready).await.unwrap();
    let statuses = async || {
        let binding = fleet.api::<ResourceBinding>().get(BINDING).await.unwrap();
        let items = binding.status.unwrap_or_default().aggregated_status;
        items.iter().map(|item| item.status.clone().unwrap_or_default()["readyReplicas"].clone()).collect::<Vec<_>>()
    };
    fleet.until("its status is in the binding", async || statuses().await == [json!(null), json!(3)]).await;
    fleet.rest().await;
    let revisions = || fleet.servers.iter().map(kctl::apiserver::ApiServer::revision).collect::<Vec<_>>();
    let before = revisions();
    fleet.rest().await;
    assert_eq!(revisions(), before, "nothing is written once all is as it should be");
    workloads(&fleet.home).delete("batch", &DeleteParams::default()).await.unwrap();
    fleet.until("it is gone", async || fleet.images().await == [None, None]).await;
}

#[tokio::test(start_paused = true)]
async fn missing_kind_is_reported_and_distributed_once_installed() {
    let fleet = Fleet::new().await;
    fleet.apply(crate::world::CLUSTERS).await;
    fleet.apply(WORKLOADS).await;
    let missing = "no kind Workload in workload.example.io/v1alpha1";
    fleet.until("the policy says so", async || fleet.policy_message("workloads").await.contains(missing)).await;
    for server in std::iter::once(&fleet.home).chain(&fleet.members) {
        define(server).await;
    }
    fleet.apply(WORKLOAD).await;
    fleet.until("it is there", async || fleet.images().await == [Some("batch:1".into()), Some("batch:1".into())]).await;
    fleet.until("nothing is missing", async || fleet.policy_message("workloads").await.is_empty()).await;
    undefine(&fleet.home).await;
    fleet.until("with its kind it is gone", async || fleet.images().await == [None, None]).await;
    fleet.rest().await;
    define(&fleet.home).await;
    fleet.apply(WORKLOAD).await;
    fleet.until("and is back with it", async || fleet.images().await.iter().all(Option::is_some)).await;
}

#[tokio::test(start_paused = true)]
async fn work_reports_a_kind_that_the_member_lacks() {
    let fleet = Fleet::new().await;
    define(&fleet.home).await;
    define(&fleet.members[1]).await;
    fleet.apply(crate::world::CLUSTERS).await;
    fleet.apply(WORKLOADS).await;
    fleet.apply(WORKLOAD).await;
    fleet.until("one has it", async || fleet.images().await == [None, Some("batch:1".into())]).await;
    let work = format!("{BINDING}-member1");
    let missing = "member1 has no kind Workload in workload.example.io/v1alpha1";
    fleet.until("the work says why", async || fleet.applied_message_of(&work).await.contains(missing)).await;
    define(&fleet.members[0]).await;
    fleet.until("the other one has it", async || fleet.images().await[0] == Some("batch:1".into())).await;
    fleet.until("the work is content", async || fleet.applied_message_of(&work).await.is_empty()).await;
    undefine(&fleet.members[0]).await;
    fleet.until("the work says why again", async || fleet.applied_message_of(&work).await.contains(missing)).await;
    workloads(&fleet.home).delete("batch", &DeleteParams::default()).await.unwrap();
    let left = async || fleet.api::<Work>().list(&ListParams::default()).await.unwrap().items.len();
    fleet.until("a deleted kind blocks nothing", async || left().await == 0).await;
}

#[tokio::test(start_paused = true)]
async fn built_in_kinds_are_divided_and_aggregated() {
    let fleet = Fleet::new().await;
    fleet.apply(crate::world::CLUSTERS).await;
    fleet.apply(include_str!("built-in.yaml")).await;
    let replicas = async || {
        let sets = fleet.both::<StatefulSet>("store").await;
        sets.map(|set| set.and_then(|set| set.spec.replicas))
    };
    fleet.until("they are divided", async || replicas().await == [Some(1), Some(3)]).await;
    fleet.until("the job is there", async || fleet.have::<Job>("once").await == [true; 2]).await;
    fleet.until("its account went with it", async || fleet.have::<ServiceAccount>("runner").await == [true; 2]).await;
    // The members have no controllers for these kinds, so the test writes the status in their place.
    for (index, replicas) in [1, 3].into_iter().enumerate() {
        let with = PatchParams::default();
        let ready = json!({ "observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas });
        let ready = Patch::Merge(json!({ "status": ready }));
        fleet.on_member::<StatefulSet>(index).patch_status("store", &with, &ready).await.unwrap();
        let active = Patch::Merge(json!({ "status": { "active": 1, "startTime": "2026-01-01T00:00:00Z" } }));
        fleet.on_member::<Job>(index).patch_status("once", &with, &active).await.unwrap();
    }
    let ready = async || fleet.api::<StatefulSet>().get("store").await.unwrap().status.and_then(|s| s.ready_replicas);
    fleet.until("the template counts both", async || ready().await == Some(4)).await;
    let active = async || fleet.api::<Job>().get("once").await.unwrap().status.and_then(|status| status.active);
    fleet.until("both jobs count", async || active().await == Some(2)).await;
}

#[tokio::test(start_paused = true)]
async fn kinds_of_the_program_itself_are_kept() {
    let fleet = Fleet::with_web().await;
    fleet.apply("apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: all }\nspec: { resourceSelectors: [{ apiVersion: fleet.example.com/v1alpha1, kind: Work }] }").await;
    fleet
        .until("the policy says so", async || {
            fleet.policy_message("all").await.contains("remains in the control plane")
        })
        .await;
    fleet.rest().await;
    let bindings = fleet.api::<ResourceBinding>().list(&ListParams::default()).await.unwrap().items;
    assert!(bindings.iter().all(|binding| binding.spec.resource.kind != "Work"));
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_kind_is_rejected_by_the_policy() {
    let fleet = Fleet::new().await;
    fleet.apply("apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: roles }\nspec: { resourceSelectors: [{ apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole }] }").await;
    let wanted =
        "ClusterRole of rbac.authorization.k8s.io/v1 is cluster-scoped: a policy selects objects of its namespace";
    fleet.until("the policy reports it", async || fleet.policy_message("roles").await == wanted).await;
}

#[tokio::test(start_paused = true)]
async fn divided_job_runs_its_completions_once_in_all() {
    let fleet = Fleet::new().await;
    fleet.apply(crate::world::CLUSTERS).await;
    fleet.apply(include_str!("divided-job.yaml")).await;
    let shares = async || {
        let jobs = fleet.both::<Job>("ten").await;
        jobs.map(|job| job.and_then(|job| job.spec).map(|spec| (spec.parallelism, spec.completions)))
    };
    let wanted = [Some((Some(1), Some(2))), Some((Some(4), Some(8)))];
    fleet.until("two completions here, eight there", async || shares().await == wanted).await;
}

#[tokio::test(start_paused = true)]
async fn kind_without_health_rule_counts_as_healthy() {
    let fleet = Fleet::new().await;
    fleet.apply(crate::world::CLUSTERS).await;
    fleet.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: { name: settings }").await;
    fleet.apply("apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: settings }\nspec: { resourceSelectors: [{ apiVersion: v1, kind: ConfigMap, name: settings }] }").await;
    fleet.until("it is there", async || fleet.have::<ConfigMap>("settings").await == [true; 2]).await;
    let health = async || fleet.health("configmap-settings").await;
    fleet.until("both are healthy", async || health().await == ["Healthy", "Healthy"]).await;
}
