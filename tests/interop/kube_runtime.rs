//! kube's own `Controller`, `watcher` and `Recorder`, in-process and on paused time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event as StoredEvent,
};
use kctl_apiserver::ApiServer;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use kube_runtime::{
    Controller,
    controller::Action,
    events::{Event, EventType, Recorder, Reporter},
    watcher::{self, watcher},
};
use serde_json::json;

const N_APPS: usize = 5;
/// Far more than what converging takes on paused time.
const WITHIN: Duration = Duration::from_secs(300);

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
    assert!(tokio::time::timeout(WITHIN, waiting).await.is_ok(), "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_kube_converges_and_records_events() {
    let server = ApiServer::new();
    tokio::spawn(server.controllers());
    let client = client(&server);
    let recorder = Recorder::new(client.clone(), Reporter { controller: "interop".into(), instance: Some("a".into()) });
    let apps = Api::<ConfigMap>::default_namespaced(client.clone());
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let controller = Controller::new(apps.clone(), watcher::Config::default().labels("role=app").streaming_lists())
        .owns(secrets.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new((client.clone(), recorder)));
    let running = tokio::spawn(controller.for_each(|_| async {}));
    for index in 0..N_APPS {
        apps.create(&PostParams::default(), &app(&format!("app-{index}"), 3)).await.expect("it is new");
    }
    let n_secrets = async |wanted: usize| {
        let all = secrets.list(&ListParams::default()).await.expect("secrets are listed");
        all.items.len() == wanted
    };
    eventually("each app has three secrets", || n_secrets(3 * N_APPS)).await;
    secrets.delete("app-1-1", &DeleteParams::default()).await.expect("it is there");
    eventually("a secret that was deleted comes back", || n_secrets(3 * N_APPS)).await;
    apps.delete("app-0", &DeleteParams::default()).await.expect("it is there");
    eventually("the secrets of a deleted app go", || n_secrets(3 * (N_APPS - 1))).await;
    let events = Api::<StoredEvent>::default_namespaced(client.clone());
    let told = events.list(&ListParams::default()).await.expect("events are listed").items;
    let ready = told.iter().filter(|event| event.note.as_deref() == Some("has 3 replicas")).count();
    assert_eq!(ready, N_APPS, "a repeated event is a series: {told:?}");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_kube_sees_what_is_there_and_what_comes() {
    let server = ApiServer::new();
    let apps = Api::<ConfigMap>::default_namespaced(client(&server));
    apps.create(&PostParams::default(), &app("old", 1)).await.expect("it is new");
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = Box::pin(watcher(apps.clone(), config));
        let mut seen = Vec::new();
        let mut next = async || {
            let event = events.try_next().await.expect("the watch holds").expect("a watch goes on");
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
