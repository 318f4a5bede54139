//! `/metrics`: the names and labels that dashboards of controller-runtime know, and what they count.

use kctl::{
    kube::{Api, api::PostParams},
    manager::metrics::{
        Format, Metrics, RequestCounter,
        prometheus_client::{metrics::counter::Counter, registry::Registry},
    },
    prelude::*,
};
use kctl_tests::{Fault, Faults};
use parking_lot::Mutex;
use tower::{Layer, ServiceExt};

use crate::contest::{Contest, config, seconds};

/// Does what the name of the object says.
#[controller(owns = Secret, concurrency = 3, retries = 0, timeout = "5s", name = "does")]
async fn does(config: Arc<ConfigMap>, cx: Context<does>) -> Result<Action> {
    match config.name_any().as_str() {
        "fails" => Err("no".into()),
        "terminal" => Err::<Action, _>("never").terminal(),
        "panics" => panic!("it does"),
        "hangs" => std::future::pending().await,
        "conflicts" => {
            let metadata = ObjectMeta { name: Some("x".into()), ..ObjectMeta::default() };
            let secret = Secret { metadata, ..Secret::default() };
            cx.owned::<Secret>().create(secret).await?;
            Ok(Action::await_change())
        }
        "later" => Ok(Action::requeue(Duration::from_secs(3_600))),
        _ => Ok(Action::await_change()),
    }
}

async fn running(contest: &Contest, faults: &Faults, elected: bool) -> Metrics {
    let mut manager = App::new("does").controller::<does>().manager(faults.client(&contest.server)).await.unwrap();
    if elected {
        manager = manager.elect(config("a")).unwrap();
    }
    let metrics = manager.metrics().clone();
    tokio::spawn(manager.run(std::future::pending()));
    metrics
}

async fn create(contest: &Contest, name: &str) {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &object).await.unwrap();
}

/// The value of a sample, which is named with its labels.
fn written<'a>(text: &'a str, sample: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in:\n{text}"))
}

fn seconds_of(text: &str, sample: &str) -> f64 {
    written(text, sample).parse().unwrap()
}

/// The value of a sample that is a whole number.
fn value(text: &str, sample: &str) -> u64 {
    written(text, sample).trim_end_matches(".0").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_name_of_controller_runtime_and_client_go_is_there_from_the_start() {
    let contest = Contest::new();
    let metrics = running(&contest, &Faults::default(), true).await;
    seconds(1).await;
    let text = metrics.text(Format::Prometheus);
    for result in ["success", "error", "requeue", "requeue_after", "conflict"] {
        let sample = format!(r#"controller_runtime_reconcile_total{{controller="does",result="{result}"}}"#);
        assert_eq!(value(&text, &sample), 0);
    }
    let names = [
        ("controller_runtime_reconcile_errors_total", r#"{controller="does"}"#, 0),
        ("controller_runtime_terminal_reconcile_errors_total", r#"{controller="does"}"#, 0),
        ("controller_runtime_reconcile_panics_total", r#"{controller="does"}"#, 0),
        ("controller_runtime_reconcile_timeouts_total", r#"{controller="does"}"#, 0),
        ("controller_runtime_reconcile_time_seconds_count", r#"{controller="does"}"#, 0),
        ("controller_runtime_active_workers", r#"{controller="does"}"#, 0),
        ("controller_runtime_max_concurrent_reconciles", r#"{controller="does"}"#, 3),
        ("workqueue_depth", r#"{name="does",controller="does",priority="0"}"#, 0),
        ("workqueue_adds_total", r#"{name="does",controller="does"}"#, 0),
        ("workqueue_retries_total", r#"{name="does",controller="does"}"#, 0),
        ("workqueue_queue_duration_seconds_count", r#"{name="does",controller="does"}"#, 0),
        ("workqueue_work_duration_seconds_count", r#"{name="does",controller="does"}"#, 0),
        ("workqueue_unfinished_work_seconds", r#"{name="does",controller="does"}"#, 0),
        ("workqueue_longest_running_processor_seconds", r#"{name="does",controller="does"}"#, 0),
        ("leader_election_master_status", r#"{name="podset"}"#, 1),
        ("leader_election_slowpath_total", r#"{name="podset"}"#, 0),
        ("kctl_cache_synced", r#"{name="",group="",version="v1",resource="configmaps"}"#, 1),
        ("kctl_cache_users", r#"{name="",group="",version="v1",resource="configmaps"}"#, 1),
        ("kctl_cache_bytes", r#"{name="",group="",version="v1",resource="secrets"}"#, 0),
        ("kctl_cache_lag_seconds", r#"{name="",group="",version="v1",resource="secrets"}"#, 0),
        ("informer_queued_items", r#"{name="",group="",version="v1",resource="secrets"}"#, 0),
    ];
    for (name, labels, wanted) in names {
        assert_eq!(value(&text, &format!("{name}{labels}")), wanted, "{name}");
    }
    assert!(text.contains("# TYPE controller_runtime_reconcile_total counter\n"), "{text}");
    assert!(text.contains("# TYPE controller_runtime_reconcile_time_seconds histogram\n"));
    for bound in ["store_deltas", "store_tombstones", "events", "watch_changes", "informers", "triggers"] {
        let used = value(&text, &format!(r#"kctl_bound_used{{bound="{bound}"}}"#));
        assert!(used < value(&text, &format!(r#"kctl_bound_limit{{bound="{bound}"}}"#)));
    }
}

#[tokio::test(start_paused = true)]
async fn reconciles_are_counted_by_what_they_come_to() {
    let contest = Contest::new();
    let faults = Faults::default();
    faults.add(Fault::Refuse(409), |asked| asked.method == "POST" && asked.path.ends_with("/secrets"));
    let metrics = running(&contest, &faults, false).await;
    for name in ["fine", "fails", "terminal", "panics", "hangs", "later"] {
        create(&contest, name).await;
    }
    seconds(3).await;
    let text = metrics.text(Format::Prometheus);
    assert_eq!(value(&text, r#"controller_runtime_active_workers{controller="does"}"#), 1);
    assert!(seconds_of(&text, r#"workqueue_longest_running_processor_seconds{name="does",controller="does"}"#) > 2.9);
    seconds(3).await;
    let text = metrics.text(Format::Prometheus);
    let n = |result: &str| {
        value(&text, &format!(r#"controller_runtime_reconcile_total{{controller="does",result="{result}"}}"#))
    };
    assert_eq!((n("success"), n("error"), n("requeue_after"), n("requeue")), (1, 4, 1, 0));
    let of = |name: &str| value(&text, &format!(r#"{name}{{controller="does"}}"#));
    assert_eq!(of("controller_runtime_reconcile_errors_total"), 4);
    assert_eq!(of("controller_runtime_terminal_reconcile_errors_total"), 1);
    assert_eq!(of("controller_runtime_reconcile_panics_total"), 1);
    assert_eq!(of("controller_runtime_reconcile_timeouts_total"), 1);
    assert_eq!(of("controller_runtime_reconcile_time_seconds_count"), 6);
    assert!(seconds_of(&text, r#"controller_runtime_reconcile_time_seconds_sum{controller="does"}"#) >= 5.0);
    assert_eq!(value(&text, r#"workqueue_work_duration_seconds_count{name="does",controller="does"}"#), 6);
    assert_eq!(value(&text, r#"kctl_cache_objects{name="",group="",version="v1",resource="configmaps"}"#), 6);
    assert!(value(&text, r#"kctl_cache_bytes{name="",group="",version="v1",resource="configmaps"}"#) > 6 * 100);
    create(&contest, "conflicts").await;
    seconds(1).await;
    let text = metrics.text(Format::Prometheus);
    let conflicts = value(&text, r#"controller_runtime_reconcile_total{controller="does",result="conflict"}"#);
    assert!(conflicts >= 1, "an outdated state is no error");
    assert_eq!(value(&text, r#"controller_runtime_reconcile_errors_total{controller="does"}"#), 4);
}

#[tokio::test(start_paused = true)]
async fn the_leader_is_the_one_whose_gauge_is_one() {
    let contest = Contest::new();
    let faults = Faults::default();
    let metrics = running(&contest, &faults, true).await;
    seconds(1).await;
    let status = || value(&metrics.text(Format::Prometheus), r#"leader_election_master_status{name="podset"}"#);
    assert_eq!(status(), 1);
    faults.add(Fault::Break, |asked| asked.path.contains("/leases"));
    seconds(20).await;
    assert_eq!(status(), 0);
}

#[tokio::test]
async fn requests_are_counted_by_code_method_and_host() {
    let metrics = Metrics::default();
    let counter = RequestCounter::new("10.0.0.1:6443");
    counter.register(&metrics);
    let answers = tower::service_fn(|request: http::Request<()>| async move {
        match request.uri().path() {
            "/gone" => Err("the connection broke"),
            path => Ok(http::Response::builder().status(if path == "/no" { 403 } else { 200 }).body(()).unwrap()),
        }
    });
    let client = counter.layer(answers);
    for (method, path) in [("GET", "/"), ("GET", "/"), ("POST", "/no"), ("PUT", "/gone"), ("BREW", "/")] {
        let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
        assert_eq!(client.clone().oneshot(request).await.is_err(), path == "/gone");
    }
    let text = metrics.text(Format::Prometheus);
    for (code, method, n) in [("200", "GET", 2), ("403", "POST", 1), ("<error>", "PUT", 1), ("200", "other", 1)] {
        let sample = format!(r#"rest_client_requests_total{{code="{code}",method="{method}",host="10.0.0.1:6443"}}"#);
        assert_eq!(value(&text, &sample), n);
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_objects_are_never_labels() {
    let contest = Contest::new();
    let metrics = running(&contest, &Faults::default(), true).await;
    seconds(1).await;
    let n_before = metrics.text(Format::Prometheus).lines().count();
    for n in 0..50 {
        create(&contest, &format!("an-object-{n}")).await;
    }
    seconds(5).await;
    let text = metrics.text(Format::Prometheus);
    assert!(!text.contains("an-object"));
    // A priority that was never used before is one line more.
    assert!(text.lines().count() <= n_before + 2, "{n_before} lines became {}", text.lines().count());
}

#[tokio::test(start_paused = true)]
async fn metrics_of_an_app_are_those_of_each_of_its_managers() {
    let uploads = Counter::<u64>::default();
    let counted = uploads.clone();
    let app = App::new("does").metrics(move |registry| registry.register("uploads", "Uploads", counted.clone()));
    let contest = Contest::new();
    for n in 1..3 {
        let manager = app.manager(contest.client.clone()).await.unwrap();
        uploads.inc();
        assert_eq!(value(&manager.metrics().text(Format::Prometheus), "uploads_total"), n);
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_of_users_are_written_with_the_managers_own() {
    let metrics = Metrics::default();
    let (own, other) = (Counter::<u64>::default(), Counter::<u64>::default());
    metrics.register(|registry| registry.register("restarts", "Restarts", own.clone()));
    let mut registry = Registry::default();
    registry.register("uploads", "Uploads", other.clone());
    metrics.include(Arc::new(Mutex::new(registry)));
    own.inc_by(2);
    other.inc_by(3);
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let text = metrics.text(format);
        assert_eq!((value(&text, "restarts_total"), value(&text, "uploads_total")), (2, 3));
        assert_eq!(text.matches("# EOF\n").count(), usize::from(format == Format::OpenMetrics));
    }
}
