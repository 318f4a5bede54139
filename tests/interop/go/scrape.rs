//! Prometheus' parsers accept `/metrics`, and promtool has no complaints.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use kctl::{
    kube::{
        Api, Client,
        api::PostParams,
        client::ClientBuilder,
        config::{Config, KubeConfigOptions, Kubeconfig},
    },
    manager::lease::ElectionConfig,
    prelude::*,
};
use kctl_runtime::{
    manager::metrics::RequestCounter,
    manifest::{self, ManagerOptions, RbacOptions},
};
use kctl_webhook::{
    admission::{ClientConfig, Configurations},
    server::{Server, ServerOptions},
};

use super::{Folder, program, run_and_read, start_server};

#[controller(watches = Secret(map = by_name))]
async fn scraped(config: Arc<ConfigMap>, _cx: Context<scraped>) -> Result<Action> {
    match config.name_any().as_str() {
        "fails" => Err("this one always fails".into()),
        "later" => Ok(Action::requeue(std::time::Duration::from_secs(3_600))),
        _ => Ok(Action::await_change()),
    }
}

fn by_name(secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    vec![Key::namespaced(&secret.namespace().unwrap_or_default(), &secret.name_any())]
}

/// A webhook whose metrics are scraped.
#[admission(validate)]
fn anything(_config: &ConfigMap) {}

/// Metrics of controller-runtime, client-go (including all optional ones) and the informers of Kubernetes components,
/// with the types that dashboards expect. The duration of name lookups is left out because kctl can't measure it, and
/// so are Go's runtime metrics.
const NAMES: [(&str, &str); 38] = [
    ("certwatcher_read_certificate_errors_total", "counter"),
    ("certwatcher_read_certificate_total", "counter"),
    ("controller_runtime_active_workers", "gauge"),
    ("controller_runtime_conversion_webhook_panics_total", "counter"),
    ("controller_runtime_max_concurrent_reconciles", "gauge"),
    ("controller_runtime_reconcile_errors_total", "counter"),
    ("controller_runtime_reconcile_panics_total", "counter"),
    ("controller_runtime_reconcile_time_seconds", "histogram"),
    ("controller_runtime_reconcile_timeouts_total", "counter"),
    ("controller_runtime_reconcile_total", "counter"),
    ("controller_runtime_terminal_reconcile_errors_total", "counter"),
    ("controller_runtime_webhook_latency_seconds", "histogram"),
    ("controller_runtime_webhook_panics_total", "counter"),
    ("controller_runtime_webhook_requests_in_flight", "gauge"),
    ("controller_runtime_webhook_requests_total", "counter"),
    ("informer_processing_latency_seconds", "histogram"),
    ("informer_queued_items", "gauge"),
    ("informer_store_resource_version", "gauge"),
    ("leader_election_master_status", "gauge"),
    ("leader_election_slowpath_total", "counter"),
    ("process_cpu_seconds_total", "counter"),
    ("process_max_fds", "gauge"),
    ("process_open_fds", "gauge"),
    ("process_resident_memory_bytes", "gauge"),
    ("process_start_time_seconds", "gauge"),
    ("process_virtual_memory_bytes", "gauge"),
    ("rest_client_rate_limiter_duration_seconds", "histogram"),
    ("rest_client_request_duration_seconds", "histogram"),
    ("rest_client_request_size_bytes", "histogram"),
    ("rest_client_requests_total", "counter"),
    ("rest_client_response_size_bytes", "histogram"),
    ("workqueue_adds_total", "counter"),
    ("workqueue_depth", "gauge"),
    ("workqueue_longest_running_processor_seconds", "gauge"),
    ("workqueue_queue_duration_seconds", "histogram"),
    ("workqueue_retries_total", "counter"),
    ("workqueue_unfinished_work_seconds", "gauge"),
    ("workqueue_work_duration_seconds", "histogram"),
];

/// Groups the program's output lines by their first word.
fn by_word(output: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut words = BTreeMap::<_, BTreeSet<_>>::new();
    for (word, rest) in output.lines().filter_map(|line| line.split_once(' ')) {
        words.entry(word).or_default().insert(rest);
    }
    words
}

/// A program with a webhook and leader election, whose metrics are scraped.
struct Scraped {
    url: String,
    running: tokio::task::JoinSet<()>,
}

impl Scraped {
    async fn start(kubeconfig: PathBuf) -> Self {
        let config = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let requests = RequestCounter::new("127.0.0.1");
        let client: Client = ClientBuilder::try_from(config).unwrap().with_layer(&requests).build();
        let app = App::new("scraped").controller::<scraped>().admission::<anything>();
        let counted = kctl_webhook::Metrics::default();
        let routes = app.webhook_routes(&counted).unwrap();
        let webhook = Server::listen(routes, ServerOptions::default()).await.unwrap();
        let reached = ClientConfig::Url(format!("https://{}", webhook.address()));
        let installed = Configurations { name: "scraped", client: &reached, authority: webhook.authority() };
        for object in installed.objects(app.admissions()) {
            let created: kctl::Json = client
                .request(
                    http::Request::post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
                        .header("content-type", "application/json")
                        .body(serde_json::to_vec(&object).unwrap())
                        .unwrap(),
                )
                .await
                .unwrap();
            assert_eq!(created["metadata"]["name"], "scraped");
        }
        let manager = app.manager(client.clone()).await.unwrap();
        requests.register(manager.metrics());
        manager.metrics().register(|registry| counted.register(registry));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let manager = manager.serve_metrics(listener).elect(ElectionConfig::new("scraped", "default", "a")).unwrap();
        let mut running = tokio::task::JoinSet::new();
        running.spawn(async move { webhook.serve(std::future::pending()).await.unwrap() });
        running.spawn(async move { manager.run(std::future::pending()).await.unwrap() });
        for name in ["fails", "later", "quiet"] {
            let object = kctl::from_json(kctl::json!({ "metadata": { "name": name } })).unwrap();
            Api::<ConfigMap>::default_namespaced(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        Self { url, running }
    }
}

/// Writes the program's alerts as a Prometheus rule file and its dashboard as a Grafana file.
fn monitoring(folder: &Folder) -> [PathBuf; 2] {
    let names = RbacOptions::new("scraped", "default");
    let manifests =
        manifest::monitoring(&names, ManagerOptions::default().with_leader_election().with_metrics()).unwrap();
    let of = |kind: &str| &manifests.iter().find(|manifest| manifest.object["kind"] == kind).unwrap().object;
    let files = [folder.0.join("rules.yaml"), folder.0.join("dashboard.json")];
    std::fs::write(&files[0], of("PrometheusRule")["spec"].to_string()).unwrap();
    std::fs::write(&files[1], of("ConfigMap")["data"]["scraped.json"].as_str().unwrap()).unwrap();
    files
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: cargo xtask interop"]
async fn prometheus_parsers_accept_both_formats_with_every_name() {
    let folder = Folder::new("scrape");
    let (_server, kubeconfig) = start_server(&folder).await;
    let scraped = Scraped::start(kubeconfig).await;
    let output = run_and_read(program("prometheus").await.arg(scraped.url)).await;
    drop(scraped.running);
    let words = by_word(&output);
    assert_eq!(words["text"], words["openmetrics"], "both formats have the same series");
    let types: BTreeMap<_, _> = words["type"].iter().filter_map(|line| line.split_once(' ')).collect();
    let lacking: Vec<_> = NAMES.iter().filter(|(name, kind)| types.get(name) != Some(kind)).collect();
    assert!(lacking.is_empty(), "{lacking:?}\n{output}");
    assert_eq!(words.get("lint"), None, "what promtool would complain of");

    let queries = run_and_read(program("prometheus").await.args(monitoring(&folder))).await;
    let queried = by_word(&queries);
    assert!(queried["alert"].len() > 10 && queried["panel"].len() > 10, "{queries}");
    // Prometheus itself creates `up`.
    let unknown: Vec<_> =
        queried["asks"].iter().filter(|name| **name != "up" && !words["text"].contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}\n{output}");
}
