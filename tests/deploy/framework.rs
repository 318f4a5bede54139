//! The permissions that the framework itself needs (Events, the Leases of an election or of shards, `blockOwnerDeletion`)
//! are minimal: without one verb, exactly that request is rejected.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Method, Request};
use kctl::{
    Json, json,
    kube::{Client, client::Body},
    manager::lease::ElectionConfig,
    prelude::*,
};
use kctl_runtime::{
    manager::shards::ShardConfig,
    manifest::{ManagerOptions, RbacOptions, manager_rbac, permissions, rbac_of},
    shard::{ShardBy, slot_name},
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    cluster::{Cluster, client, until},
    roles,
};

/// Each removed permission, and the request that is rejected without it. Watching the Leases makes a hand-over fast.
const MANAGER_PERMISSIONS: [([&str; 2], &str); 7] = [
    (["events", "create"], "create events"),
    (["events", "patch"], "patch events"),
    (["leases", "create"], "create leases"),
    (["leases", "get"], "get leases"),
    (["leases", "list"], "list leases"),
    (["leases", "update"], "update leases"),
    (["leases", "watch"], "watch leases"),
];
/// Without this permission, the API server rejects an object with `blockOwnerDeletion` in its owner reference.
const OWNER_PERMISSION: ([&str; 2], &str) = (["configmaps/finalizers", "update"], "create secrets");

/// Owns a Secret that blocks the deletion of its owner, and records an Event in each reconcile.
#[controller(
    name = "framework",
    primary(selector = "app=framework"),
    owns = Secret(create, block_owner_deletion)
)]
async fn framework(config: Arc<ConfigMap>, cx: Context<framework>) -> Result<Action> {
    cx.event(EventType::Normal, "Seen", "it is there");
    let secrets = cx.owned::<Secret>();
    if secrets.is_empty() {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        secrets.create(Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("framework").controller::<framework>()
}

/// The Leases that a program of a trial holds.
#[derive(Clone, Copy)]
enum Leases {
    /// The Lease of leader election.
    Election,
    /// The Leases of two slots.
    Shards,
}

const N_SLOTS: u32 = 2;

impl Leases {
    fn options(self) -> ManagerOptions {
        match self {
            Self::Election => ManagerOptions::default().with_leader_election(),
            Self::Shards => ManagerOptions::default().with_shards(N_SLOTS),
        }
    }

    /// Returns the name of a Lease that the only replica renews.
    fn renewed_lease(self, app: &str) -> String {
        match self {
            Self::Election => app.to_owned(),
            Self::Shards => slot_name(app, N_SLOTS - 1),
        }
    }
}

/// A program that runs with its generated role, in a separate namespace.
struct Trial<'a> {
    cluster: &'a Cluster,
    leases: Leases,
    name: String,
    manifests: Vec<Json>,
    rejected: Arc<Mutex<BTreeSet<String>>>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// Returns the generated manifests, optionally without one verb.
fn manifests(name: &str, leases: Leases, without: Option<[&str; 2]>) -> Vec<Json> {
    let options = RbacOptions::new(name, name);
    let mut all = rbac_of(&permissions(&app().specs(), ""), &options).unwrap();
    all.extend(manager_rbac(&options, leases.options()).unwrap());
    let mut all: Vec<Json> = all.into_iter().map(|manifest| manifest.object).collect();
    let Some([resource, verb]) = without else { return all };
    let mut n_taken = 0;
    for rule in all.iter_mut().filter_map(rules_of).flatten() {
        if rule["resources"] == json!([resource]) {
            let verbs = rule["verbs"].as_array_mut().unwrap();
            let before = verbs.len();
            verbs.retain(|known| known != verb);
            n_taken += before - verbs.len();
        }
    }
    assert_eq!(n_taken, 1, "{verb} {resource} is in the role once: {all:?}");
    for rules in all.iter_mut().filter_map(rules_of) {
        rules.retain(|rule| rule["verbs"] != json!([]));
    }
    all
}

fn rules_of(object: &mut Json) -> Option<&mut Vec<Json>> {
    object.get_mut("rules")?.as_array_mut()
}

/// Returns verb and resource of a request, as RBAC names them.
fn verb_and_resource<B>(request: &Request<B>) -> String {
    let parts: Vec<_> = request.uri().path().trim_matches('/').split('/').collect();
    let at =
        parts.iter().position(|part| *part == "namespaces").map_or(if parts[0] == "api" { 2 } else { 3 }, |at| at + 2);
    let query = request.uri().query().unwrap_or_default();
    let verb = match *request.method() {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if query.contains("watch=") => "watch",
        _ if parts.len() > at + 1 => "get",
        _ => "list",
    };
    format!("{verb} {}", parts.get(at).copied().unwrap_or_default())
}

impl<'a> Trial<'a> {
    async fn start(cluster: &'a Cluster, leases: Leases, without: Option<[&str; 2]>) -> Self {
        static TRIALS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("framework-{}-{}", std::process::id(), TRIALS.fetch_add(1, Ordering::Relaxed));
        let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": &name } });
        let mut manifests = manifests(&name, leases, without);
        manifests.insert(0, space);
        for object in &manifests {
            cluster.apply(object, &name).await;
        }
        let inner = client(&cluster.kubeconfig_of(&name, &name).await).await;
        roles::wait_for_roles(&manifests, &name, &name, &inner).await;
        let rejected = Arc::<Mutex<BTreeSet<String>>>::default();
        let noted = rejected.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, noted, permission) = (inner.clone(), noted.clone(), verb_and_resource(&request));
            async move {
                let response = inner.send(request).await;
                if response.as_ref().is_ok_and(|response| response.status() == 403) {
                    noted.lock().insert(permission);
                }
                response
            }
        });
        let client = Client::new(service, name.clone());
        let (manager, config) = (app().manager(client.clone()).await.unwrap(), ElectionConfig::new(&name, &name, "a"));
        let manager = match leases {
            Leases::Election => manager.elect(config).unwrap(),
            Leases::Shards => {
                manager.shard(client, ShardConfig::new(config, N_SLOTS, ShardBy::Object).unwrap()).unwrap()
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            // `run` fails if the Lease can't be renewed, which some trials cause on purpose.
            let _ended = manager.run(async move { drop(stopped.await) }).await;
        });
        Self { cluster, leases, name, manifests, rejected, stop, running }
    }

    /// Changes the reconciled object.
    async fn change(&self, n: usize) {
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "labels": { "app": "framework" } },
            "data": { "n": n.to_string() },
        });
        self.cluster.apply(&config, &self.name).await;
    }

    /// Returns `true` once the Event was repeated, the Lease was renewed and the Secret blocks the deletion of its
    /// owner.
    async fn has_acted(&self) -> bool {
        let events = self.cluster.list("events.k8s.io/v1", "Event", &self.name).await;
        let again = events.iter().any(|event| event["series"]["count"].as_i64() >= Some(2));
        let lease = self.leases.renewed_lease(&self.name);
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": lease } });
        let lease = self.cluster.get(&lease, &self.name).await.unwrap_or_default()["spec"].take();
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
        let secret = self.cluster.get(&secret, &self.name).await.unwrap_or_default();
        let blocks = secret["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] == true;
        again && blocks && !lease["renewTime"].is_null() && lease["renewTime"] != lease["acquireTime"]
    }

    async fn end(self) -> BTreeSet<String> {
        let _ended = self.stop.send(());
        self.running.await.unwrap();
        // The program of the next trial would reconcile it too, and its Event would be rejected in the terminating
        // namespace.
        let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        self.cluster.delete(&config, &self.name).await;
        for object in self.manifests.iter().rev() {
            self.cluster.delete(object, &self.name).await;
        }
        std::mem::take(&mut self.rejected.lock())
    }
}

/// Checks that no request is rejected with the complete role.
async fn is_enough(cluster: &Cluster, leases: Leases) {
    let (trial, n) = (Trial::start(cluster, leases, None).await, AtomicUsize::new(0));
    until("an event, a renewal and an object", || async {
        trial.change(n.fetch_add(1, Ordering::Relaxed)).await;
        trial.has_acted().await
    })
    .await;
    assert_eq!(trial.end().await, BTreeSet::new());
}

/// Checks that without this verb exactly the expected request is rejected.
async fn is_needed(cluster: &Cluster, leases: Leases, without: [&str; 2], expected: &str) {
    let (trial, n) = (Trial::start(cluster, leases, Some(without)).await, AtomicUsize::new(0));
    until(&format!("without {without:?}: {expected} is rejected"), || async {
        trial.change(n.fetch_add(1, Ordering::Relaxed)).await;
        !trial.rejected.lock().is_empty()
    })
    .await;
    let rejected = trial.end().await;
    assert_eq!(rejected, BTreeSet::from([expected.to_owned()]), "without {without:?}");
}

async fn role_is_exact(cluster: &Cluster) {
    for leases in [Leases::Election, Leases::Shards] {
        is_enough(cluster, leases).await;
        for (without, expected) in MANAGER_PERMISSIONS {
            is_needed(cluster, leases, without, expected).await;
        }
    }
}

/// Returns `true` if the server enforces permissions for `blockOwnerDeletion`. The admission plugin
/// `OwnerReferencesPermissionEnforcement` is not enabled by default.
async fn asks_about_owners(cluster: &Cluster) -> bool {
    let trial = Trial::start(cluster, Leases::Election, Some(OWNER_PERMISSION.0)).await;
    trial.change(0).await;
    until("the object is made or rejected", || async { trial.is_whole_or_rejected().await }).await;
    !trial.end().await.is_empty()
}

impl Trial<'_> {
    async fn is_whole_or_rejected(&self) -> bool {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
        self.cluster.get(&secret, &self.name).await.is_some() || !self.rejected.lock().is_empty()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn framework_verbs_are_needed_on_embedded_server() {
    role_is_exact(&Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG: cargo xtask deployed"]
async fn framework_verbs_are_needed_on_a_real_server() {
    let cluster = Cluster::from_env("KUBECONFIG").await;
    role_is_exact(&cluster).await;
    if asks_about_owners(&cluster).await {
        is_needed(&cluster, Leases::Election, OWNER_PERMISSION.0, OWNER_PERMISSION.1).await;
    } else {
        eprintln!("left out: the admission plugin OwnerReferencesPermissionEnforcement is off");
    }
}
