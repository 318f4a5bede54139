//! Prometheus' own parsers read `/metrics`.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    kube::{
        Api, Client,
        api::PostParams,
        config::{Config, KubeConfigOptions, Kubeconfig},
    },
    manager::{lease::ElectionConfig, metrics::RequestCounter},
    prelude::*,
};

use super::{Folder, asked, printed, program, served};

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

/// What controller-runtime and client-go register by themselves, and the informers of Kubernetes' components, with the types
/// that dashboards expect. Webhooks and watched certificates have theirs where there are some.
const NAMES: [(&str, &str); 27] = [
    ("controller_runtime_active_workers", "gauge"),
    ("controller_runtime_max_concurrent_reconciles", "gauge"),
    ("controller_runtime_reconcile_errors_total", "counter"),
    ("controller_runtime_reconcile_panics_total", "counter"),
    ("controller_runtime_reconcile_time_seconds", "histogram"),
    ("controller_runtime_reconcile_timeouts_total", "counter"),
    ("controller_runtime_reconcile_total", "counter"),
    ("controller_runtime_terminal_reconcile_errors_total", "counter"),
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
    ("rest_client_requests_total", "counter"),
    ("workqueue_adds_total", "counter"),
    ("workqueue_depth", "gauge"),
    ("workqueue_longest_running_processor_seconds", "gauge"),
    ("workqueue_queue_duration_seconds", "histogram"),
    ("workqueue_retries_total", "counter"),
    ("workqueue_unfinished_work_seconds", "gauge"),
    ("workqueue_work_duration_seconds", "histogram"),
];

/// Lines of the program by their first word.
fn by_word(told: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut words = BTreeMap::<_, BTreeSet<_>>::new();
    for (word, rest) in told.lines().filter_map(|line| line.split_once(' ')) {
        words.entry(word).or_default().insert(rest);
    }
    words
}

#[tokio::test(flavor = "multi_thread")]
async fn parsers_of_prometheus_accept_the_metrics_in_both_formats_and_find_every_name() {
    if !asked() {
        return;
    }
    let folder = Folder::new("scrape");
    let (_server, kubeconfig) = served(&folder).await;
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let requests = RequestCounter::new("127.0.0.1");
    let client: Client = kctl::kube::client::ClientBuilder::try_from(config).unwrap().with_layer(&requests).build();
    let manager = App::new("scraped").controller::<scraped>().manager(client.clone()).await.unwrap();
    requests.register(manager.metrics());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let manager = manager.serve_metrics(listener).elect(ElectionConfig::new("scraped", "default", "a")).unwrap();
    let running = tokio::spawn(manager.run(std::future::pending()));
    for name in ["fails", "later", "quiet"] {
        let object = kctl::from_json(kctl::json!({ "metadata": { "name": name } })).unwrap();
        Api::<ConfigMap>::default_namespaced(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;

    let told = printed(program("prometheus").await.arg(url)).await;
    running.abort();
    let words = by_word(&told);
    assert_eq!(words["text"], words["openmetrics"], "both formats have the same series");
    let types: BTreeMap<_, _> = words["type"].iter().filter_map(|line| line.split_once(' ')).collect();
    let lacking: Vec<_> = NAMES.iter().filter(|(name, kind)| types.get(name) != Some(kind)).collect();
    assert!(lacking.is_empty(), "{lacking:?}\n{told}");
    assert_eq!(words.get("lint"), None, "what promtool would complain of");
}
