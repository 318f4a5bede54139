//! kube's own `Controller`, `watcher` and `Recorder` against the embedded API server, in process and with simulated
//! time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kctl_apiserver::{ApiServer, User};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use kube_runtime::{
    Controller, WatchStreamExt,
    controller::Action,
    events::{Event, EventType, Recorder, Reporter},
    reflector::{self, Store},
    watcher::{self, watcher},
};
use serde_json::json;

use crate::plan::{assert_acted, plan};

const N_APPS: usize = 5;
/// Time limit in simulated time, far longer than a controller takes to converge.
const TIMEOUT: Duration = Duration::from_secs(1_000);
/// Number of fault plans to run.
const N_SEEDS: u64 = 10;
/// Number of writes that a watcher follows per fault plan.
const N_WRITES: u64 = 60;

fn client(server: &ApiServer) -> Client {
    Client::new(server.service(), "default")
}

fn app(name: &str, replicas: usize) -> ConfigMap {
    let labels = BTreeMap::from([("role".to_owned(), "app".to_owned())]);
    let metadata = ObjectMeta { name: Some(name.into()), labels: Some(labels), ..ObjectMeta::default() };
    let data = BTreeMap::from([("replicas".to_owned(), replicas.to_string())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

async fn reconcile(app: Arc<ConfigMap>, context: Arc<(Client, Recorder)>) -> Result<Action, kube::Error> {
    let (client, recorder) = &*context;
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let wanted: usize = app.data.as_ref().and_then(|data| data.get("replicas")?.parse().ok()).unwrap_or(0);
    let owner = app.controller_owner_ref(&()).expect("a stored object has a uid");
    for index in 0..wanted {
        let name = format!("{}-{index}", app.name_any());
        let secret =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "ownerReferences": [owner] } });
        secrets.patch(&name, &PatchParams::apply("interop").force(), &Patch::Apply(secret)).await?;
    }
    let event = Event {
        type_: EventType::Normal,
        reason: "Ready".into(),
        note: Some(format!("has {wanted} replicas")),
        action: "Reconcile".into(),
        secondary: None,
    };
    recorder.publish(&event, &app.object_ref(&())).await?;
    Ok(Action::await_change())
}

async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, waiting).await.is_ok(), "{what}");
}

#[tokio::test(start_paused = true)]
async fn kube_controller_converges_and_records_events() {
    let server = ApiServer::new();
    converges(&server, client(&server)).await;
    assert_eq!(ready(&server).len(), N_APPS, "a repeated event is a series");
}

#[tokio::test(start_paused = true)]
async fn kube_controller_converges_under_faults_of_any_seed() {
    for seed in 0..N_SEEDS {
        let (server, faults) = (ApiServer::seeded(seed), plan(seed));
        let client = Client::new(server.faulty(User::admin(), &faults.connection("kube")), "default");
        converges(&server, client).await;
        assert_acted(&faults);
    }
}

/// Returns the apps that have an Event saying that they are ready. An Event whose response was lost is recorded twice.
fn ready(server: &ApiServer) -> Vec<String> {
    let events = server.objects("", "events");
    let ready = events.iter().filter(|event| event["message"] == "has 3 replicas");
    ready.filter_map(|event| event["involvedObject"]["name"].as_str().map(str::to_owned)).collect()
}

/// Runs a controller with one client, and checks its effects with another.
async fn converges(server: &ApiServer, client: Client) {
    let garbage = tokio::spawn(server.controllers());
    let recorder = Recorder::new(client.clone(), Reporter { controller: "interop".into(), instance: Some("a".into()) });
    let watched = Api::<ConfigMap>::default_namespaced(client.clone());
    let controller = Controller::new(watched, watcher::Config::default().labels("role=app").streaming_lists())
        .owns(Api::<Secret>::default_namespaced(client.clone()), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new((client.clone(), recorder)));
    let running = tokio::spawn(controller.for_each(|_| async {}));
    let driver = Client::new(server.service(), "default");
    let apps = Api::<ConfigMap>::default_namespaced(driver.clone());
    let secrets = Api::<Secret>::default_namespaced(driver);
    for index in 0..N_APPS {
        apps.create(&PostParams::default(), &app(&format!("app-{index}"), 3)).await.expect("it is new");
    }
    let n_secrets = async |wanted: usize| {
        let all = secrets.list(&ListParams::default()).await.expect("secrets are listed");
        all.items.len() == wanted
    };
    eventually("each app has three secrets", || n_secrets(3 * N_APPS)).await;
    let all_ready = async || ready(server).into_iter().collect::<BTreeSet<_>>().len() == N_APPS;
    eventually("each app has an event", all_ready).await;
    secrets.delete("app-1-1", &DeleteParams::default()).await.expect("it is there");
    eventually("a secret that was deleted comes back", || n_secrets(3 * N_APPS)).await;
    apps.delete("app-0", &DeleteParams::default()).await.expect("it is there");
    eventually("the secrets of a deleted app go", || n_secrets(3 * (N_APPS - 1))).await;
    running.abort();
    garbage.abort();
}

#[tokio::test(start_paused = true)]
async fn kube_watcher_sees_existing_and_new_objects() {
    let server = ApiServer::new();
    let apps = Api::<ConfigMap>::default_namespaced(client(&server));
    apps.create(&PostParams::default(), &app("old", 1)).await.expect("it is new");
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = Box::pin(watcher(apps.clone(), config));
        let mut seen = Vec::new();
        let mut next = async || {
            let event = events.try_next().await.expect("the watch holds").expect("the watch has not ended");
            let (kind, name) = match event {
                watcher::Event::Init => ("init", String::new()),
                watcher::Event::InitApply(object) => ("there", object.name_any()),
                watcher::Event::InitDone => ("done", String::new()),
                watcher::Event::Apply(object) => ("applied", object.name_any()),
                watcher::Event::Delete(object) => ("deleted", object.name_any()),
            };
            seen.push((kind, name));
        };
        for _ in 0..3 {
            next().await;
        }
        apps.create(&PostParams::default(), &app("new", 1)).await.expect("it is new");
        next().await;
        apps.delete("new", &DeleteParams::default()).await.expect("it is there");
        next().await;
        let expected = [("init", ""), ("there", "old"), ("done", ""), ("applied", "new"), ("deleted", "new")];
        assert_eq!(seen, expected.map(|(kind, name)| (kind, name.to_owned())));
    }
}

/// Returns the contents of a reflector: each object with its `resourceVersion`.
fn reflector_contents(store: &Store<ConfigMap>) -> BTreeMap<String, Option<String>> {
    store.state().iter().map(|object| (object.name_any(), object.resource_version())).collect()
}

/// Returns the objects of the server with their `resourceVersion`.
fn server_contents(server: &ApiServer) -> BTreeMap<String, Option<String>> {
    let text = |object: &serde_json::Value, field: &str| object["metadata"][field].as_str().map(str::to_owned);
    let objects = server.objects("", "configmaps");
    objects.iter().map(|object| (text(object, "name").unwrap_or_default(), text(object, "resourceVersion"))).collect()
}

#[tokio::test(start_paused = true)]
async fn kube_reflector_converges_under_faults_of_any_seed() {
    for (seed, streams) in (0..N_SEEDS).flat_map(|seed| [(seed, false), (seed, true)]) {
        let (server, faults) = (ApiServer::seeded(seed), plan(seed));
        let client = Client::new(server.faulty(User::admin(), &faults.connection("kube")), "default");
        let config = watcher::Config::default();
        let config = if streams { config.streaming_lists() } else { config };
        let (store, writer) = reflector::store();
        let events = watcher(Api::<ConfigMap>::default_namespaced(client), config).default_backoff().reflect(writer);
        let running = tokio::spawn(events.for_each(|_| async {}));
        let driver = Api::<ConfigMap>::default_namespaced(Client::new(server.service(), "default"));
        let mut there = BTreeSet::new();
        for n in 0..N_WRITES {
            let name = format!("config-{}", n % 7);
            if there.insert(name.clone()) {
                driver.create(&PostParams::default(), &app(&name, 1)).await.expect("it is new");
            } else if n % 3 == 0 {
                there.remove(&name);
                driver.delete(&name, &DeleteParams::default()).await.expect("it is there");
            } else {
                let patch = Patch::Merge(json!({ "data": { "n": n.to_string() } }));
                driver.patch(&name, &PatchParams::default(), &patch).await.expect("it is there");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        eventually(&format!("seed {seed}: the reflector has what there is"), || async {
            reflector_contents(&store) == server_contents(&server)
        })
        .await;
        running.abort();
    }
}
