//! A fleet of three embedded API servers: the control plane and two members.

use std::time::Duration;

use kctl::{
    apiserver::{
        ApiServer, Kubelet, User, Workloads,
        faults::{Faults, RequestFault, Rule, StaleState},
    },
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams, PostParams},
        core::{DynamicObject, GroupVersionKind, NamespaceResourceScope},
        discovery,
    },
    object::Object,
    prelude::*,
};
use multicluster::{MemberCluster, ResourceBinding, Work};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use crate::link::Link;

/// Longest wait for a state. Embedded servers use simulated time.
const TIMEOUT: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) const FLEET: &str = include_str!("../../fleet.yaml");

/// The Cluster objects of the members, and nothing else.
pub(crate) const CLUSTERS: &str = "apiVersion: fleet.example.com/v1alpha1\nkind: Cluster\nmetadata: { name: member1 }\nspec: {}\n---\napiVersion: fleet.example.com/v1alpha1\nkind: Cluster\nmetadata: { name: member2 }\nspec: {}";

pub(crate) struct Fleet {
    pub(crate) home: Client,
    pub(crate) members: [Client; 2],
    /// The connections of the program to the members. Empty on real servers, where they can't be cut.
    pub(crate) links: Vec<Link>,
    /// The embedded servers, the control plane first.
    pub(crate) servers: Vec<ApiServer>,
    program: AbortHandle,
    tasks: JoinSet<()>,
}

impl Fleet {
    /// Starts the servers and the program, applies `fleet.yaml`, and waits until its replicas are ready.
    pub(crate) async fn with_web() -> Self {
        let fleet = Self::new().await;
        fleet.apply(FLEET).await;
        fleet.until("the replicas are ready", async || fleet.ready("web").await == [Some(2), Some(8)]).await;
        fleet.until("the template says so", async || fleet.reported_replicas("web").await == Some(10)).await;
        fleet
    }

    /// Starts the servers and the program.
    pub(crate) async fn new() -> Self {
        let home = ApiServer::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(home.controllers());
        let members = [ApiServer::seeded(1), ApiServer::seeded(2)];
        let links: Vec<_> = members.iter().map(|_| Link::new()).collect();
        for member in &members {
            tasks.spawn(member.controllers());
            tasks.spawn(Kubelet::for_server(member).run());
            tasks.spawn(Workloads::for_server(member).run());
        }
        let servers: Vec<_> = std::iter::once(&home).chain(&members).cloned().collect();
        let clients = member_clients(&links, &servers);
        let members = members.map(|server| Client::new(server.service(), "default"));
        let fleet = Self::on(Client::new(home.service(), "default"), members, clients, tasks).await;
        Self { links, servers, ..fleet }
    }

    /// Starts the program on existing servers. `member_clients` are the program's own clients of the members.
    pub(crate) async fn on(
        home: Client,
        members: [Client; 2],
        member_clients: [Client; 2],
        mut tasks: JoinSet<()>,
    ) -> Self {
        install(&home).await;
        let program = begin(home.clone(), member_clients, &mut tasks).await;
        Self { home, members, links: Vec::new(), servers: Vec::new(), program, tasks }
    }

    /// Restarts the program. For some seconds, the control plane serves LIST and WATCH requests from this old revision.
    pub(crate) async fn restart_on(&mut self, revision: u64) {
        self.program.abort();
        let (faults, lag) = (Faults::seeded(0), Duration::from_secs(3));
        let until = Instant::now() + lag;
        let outdated = RequestFault::Outdated { past: StaleState::Revision(revision), lag };
        faults.add(Rule::request(outdated, move |request| {
            ["list", "watch"].contains(&request.verb) && Instant::now() < until
        }));
        let home = self.servers[0].faulty(User::admin(), &faults.connection("again"));
        let clients = member_clients(&self.links, &self.servers);
        self.program = begin(Client::new(home, "default"), clients, &mut self.tasks).await;
        self.rest().await;
        assert!(faults.counts().contains_key("outdated list"), "it has seen no old state");
    }

    /// Waits until a state holds. Panics after [`TIMEOUT`].
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let wait = async {
            while !holds().await {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, wait).await.is_err() {
            let works = self.api::<Work>().list(&kctl::kube::api::ListParams::default()).await.unwrap();
            let statuses: Vec<_> = works.iter().map(|work| (work.name_any(), serde_json::json!(work.status))).collect();
            panic!("not within {TIMEOUT:?}: {what}; the works say {statuses:#?}");
        }
    }

    /// Waits long enough that an unwanted change would have happened.
    pub(crate) async fn rest(&self) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    pub(crate) fn api<K: Object + kctl::kube::Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::default_namespaced(self.home.clone())
    }

    pub(crate) fn on_member<K: Object + kctl::kube::Resource<Scope = NamespaceResourceScope>>(
        &self,
        index: usize,
    ) -> Api<K> {
        Api::default_namespaced(self.members[index].clone())
    }

    /// Returns the object of this name on each member.
    pub(crate) async fn both<K: Object + kctl::kube::Resource<Scope = NamespaceResourceScope>>(
        &self,
        name: &str,
    ) -> [Option<K>; 2] {
        [self.on_member::<K>(0).get_opt(name).await.unwrap(), self.on_member::<K>(1).get_opt(name).await.unwrap()]
    }

    /// Returns for each member whether it has the object.
    pub(crate) async fn have<K: Object + kctl::kube::Resource<Scope = NamespaceResourceScope>>(
        &self,
        name: &str,
    ) -> [bool; 2] {
        self.both::<K>(name).await.map(|found| found.is_some())
    }

    /// Returns `spec.replicas` of a Deployment on each member, or `None` if it does not exist there.
    pub(crate) async fn replicas(&self, name: &str) -> [Option<i32>; 2] {
        self.both::<Deployment>(name).await.map(|found| found.and_then(|deployment| deployment.spec.replicas))
    }

    /// Returns the ready replicas of a Deployment on each member.
    pub(crate) async fn ready(&self, name: &str) -> [Option<i32>; 2] {
        let found = self.both::<Deployment>(name).await;
        found.map(|found| found.and_then(|deployment| deployment.status).and_then(|status| status.ready_replicas))
    }

    /// Returns the ready replicas in the status of the template.
    pub(crate) async fn reported_replicas(&self, name: &str) -> Option<i32> {
        self.api::<Deployment>().get(name).await.unwrap().status.and_then(|status| status.ready_replicas)
    }

    /// Returns the health of each cluster in the status of a binding.
    pub(crate) async fn health(&self, binding: &str) -> Vec<String> {
        let status = self.api::<ResourceBinding>().get(binding).await.unwrap().status.unwrap_or_default();
        status.aggregated_status.into_iter().map(|item| item.health).collect()
    }

    pub(crate) async fn is_ready(&self, cluster: &str) -> bool {
        let cluster = Api::<MemberCluster>::all(self.home.clone()).get(cluster).await.unwrap();
        cluster.status.is_some_and(|status| status.ready)
    }

    pub(crate) async fn patch<K: Object + kctl::kube::Resource<Scope = NamespaceResourceScope>>(
        &self,
        name: &str,
        patch: kctl::Json,
    ) {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete<K: Object + kctl::kube::Resource<Scope = NamespaceResourceScope>>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn apply(&self, yaml: &str) {
        apply(&self.home, yaml).await;
    }
}

/// Creates the program's own clients of the members.
fn member_clients(links: &[Link], servers: &[ApiServer]) -> [Client; 2] {
    [links[0].client(servers[1].service()), links[1].client(servers[2].service())]
}

/// Starts the controllers of the example with a manager in the home cluster and clients of both members.
async fn begin(home: Client, member_clients: [Client; 2], tasks: &mut JoinSet<()>) -> AbortHandle {
    let mut app = multicluster::controllers();
    for (name, client) in ["member1", "member2"].into_iter().zip(member_clients) {
        app = app.cluster(name, move || {
            let client = client.clone();
            async move { Ok(client) }
        });
    }
    let manager = app.manager(home).await.unwrap();
    tasks.spawn(async move { manager.run(std::future::pending()).await.unwrap() })
}

/// Creates the objects of a YAML stream.
pub(crate) async fn apply(client: &Client, yaml: &str) {
    for document in yaml.split("\n---\n") {
        let object: DynamicObject = kctl::from_yaml(document).unwrap();
        let types = object.types.clone().unwrap();
        let kind = GroupVersionKind::try_from(&types).unwrap();
        let (resource, capabilities) = discovery::pinned_kind(client, &kind).await.unwrap();
        let api: Api<DynamicObject> = match capabilities.scope {
            discovery::Scope::Cluster => Api::all_with(client.clone(), &resource),
            discovery::Scope::Namespaced => Api::default_namespaced_with(client.clone(), &resource),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

async fn install(home: &Client) {
    let crds = Api::<CustomResourceDefinition>::all(home.clone());
    for crd in kctl::manifest::definitions(&multicluster::app().kinds(), kctl::manifest::Descriptions::Own).unwrap() {
        let apply = PatchParams::apply("test").force();
        crds.patch(&crd.name_any(), &apply, &Patch::Apply(&crd)).await.unwrap();
    }
    let served = async || Api::<Work>::all(home.clone()).list(&kctl::kube::api::ListParams::default()).await.is_ok();
    while !served().await {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
