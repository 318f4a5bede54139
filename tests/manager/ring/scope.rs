//! Reads of a shard are limited to its objects, and primaries of a ring are namespaced.

use std::collections::BTreeMap;

use kctl::{
    apiserver::ApiServer,
    json,
    kube::{Api, Client, api::PostParams},
    prelude::*,
};
use kctl_runtime::worker::Outcome;
use parking_lot::Mutex;

use super::{config, curious, sharder::Sharder};
use crate::lease_candidates::advance_seconds;

#[tokio::test(start_paused = true)]
async fn read_beyond_the_shard_panics() {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let sharder = Sharder::start(&server).await;
    let configs = Api::<ConfigMap>::default_namespaced(client.clone());
    for name in ["own", "missing", "all", "children", "owned"] {
        let config = kctl::from_json(json!({ "metadata": { "name": name } })).unwrap();
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    let panics = Arc::<Mutex<BTreeMap<String, String>>>::default();
    let noted = panics.clone();
    let app = App::new("podset").controller::<curious>();
    let manager = app.manager_in_ring(client.clone(), client, config("a", 1)).await.unwrap();
    let manager = manager.clock(Arc::new(move || server.now())).on_end(Arc::new(move |report| {
        if let Outcome::Panicked(text) = &report.outcome {
            noted.lock().insert(report.key.name.to_string(), text.clone());
        }
    }));
    let running = tokio::spawn(manager.run(std::future::pending()));
    let _sharder = tokio::spawn(sharder.run());
    advance_seconds(5).await;
    running.abort();
    assert_eq!(panics.lock().keys().collect::<Vec<_>>(), ["all", "children", "missing"]);
}

#[controller(of = Namespace)]
struct OfTheCluster;

impl Reconcile for OfTheCluster {
    async fn reconcile(&self, _namespace: Arc<Namespace>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

#[tokio::test]
async fn cluster_scoped_primary_does_not_join_a_ring() {
    let client = Client::new(ApiServer::new().service(), "default");
    let app = App::new("podset").controller_with(|_env| std::future::ready(Ok(OfTheCluster)));
    let error = app.manager_in_ring(client.clone(), client, config("a", 1)).await.err().unwrap().to_string();
    assert!(
        error.contains("reconciles the cluster-scoped kind Namespace: the sharder never moves such objects"),
        "{error}"
    );
}
