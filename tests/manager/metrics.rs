//! `/metrics`: names, labels and values that dashboards of controller-runtime expect.

use http_body_util::BodyExt;
use kctl::{
    ApiError,
    key::ObjectKey,
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams, PostParams},
        client::Body,
    },
    prelude::*,
};
use kctl_runtime::{
    manager::metrics::{
        Format, Metrics, RequestCounter,
        prometheus_client::{metrics::counter::Counter, registry::Registry},
    },
    queue::Add,
};
use kctl_tests::{Fault, Faults};
use tower::{Layer, ServiceExt};

use crate::lease_candidates::{Contest, advance_seconds, config};

/// Succeeds, fails, panics or hangs, depending on the object's name.
#[controller(owns = Secret, concurrency = 3, retries = 0, timeout = "5s", name = "does")]
async fn does(config: Arc<ConfigMap>, cx: Context<does>) -> Result<Action> {
    match config.name_any().as_str() {
        "fails" if config.data.is_none() => Err("no".into()),
        "terminal" => Err::<Action, _>("never").terminal(),
        "panics" => panic!("it does"),
        "hangs" => std::future::pending().await,
        "conflicts" => {
            let metadata = ObjectMeta { name: Some("x".into()), ..ObjectMeta::default() };
            let secret = Secret { metadata, ..Secret::default() };
            cx.owned::<Secret>().create(secret).await?;
            Ok(Action::await_change())
        }
        "taken" => Err::<Action, _>(conflict()).terminal(),
        "taken-for-an-hour" => Err::<Action, _>(conflict()).retry_after(Duration::from_secs(3_600)),
        "later" => Ok(Action::requeue(Duration::from_secs(3_600))),
        _ => Ok(Action::await_change()),
    }
}

fn conflict() -> ApiError {
    let status = r#"{"reason":"Conflict","message":"the object has been modified"}"#;
    ApiError::rejected("update ConfigMap default/x", 409, None, status)
}

async fn run_with_metrics(contest: &Contest, faults: &Faults, elected: bool) -> Metrics {
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

/// Returns the value of a sample, given by its name and labels.
fn sample_value<'a>(text: &'a str, sample: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in:\n{text}"))
}

fn seconds_of(text: &str, sample: &str) -> f64 {
    sample_value(text, sample).parse().unwrap()
}

/// Returns the value of a sample as an integer.
fn value(text: &str, sample: &str) -> u64 {
    sample_value(text, sample).trim_end_matches(".0").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn controller_runtime_and_client_go_metrics_exist_initially() {
    let contest = Contest::new();
    let metrics = run_with_metrics(&contest, &Faults::default(), true).await;
    advance_seconds(1).await;
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
        ("certwatcher_read_certificate_total", "", 0),
        ("certwatcher_read_certificate_errors_total", "", 0),
        ("kctl_cache_synced", r#"{name="",group="",version="v1",resource="configmaps"}"#, 1),
        ("kctl_source_unreadable_objects", r#"{name="",group="",version="v1",resource="configmaps"}"#, 0),
        ("kctl_cache_users", r#"{name="",group="",version="v1",resource="configmaps"}"#, 1),
        ("kctl_cache_bytes", r#"{name="",group="",version="v1",resource="secrets"}"#, 0),
        ("kctl_cache_lag_seconds", r#"{name="",group="",version="v1",resource="secrets"}"#, 0),
        ("informer_processing_latency_seconds_count", r#"{name="",group="",version="v1",resource="secrets"}"#, 1),
        ("informer_queued_items", r#"{name="",group="",version="v1",resource="secrets"}"#, 0),
    ];
    for (name, labels, wanted) in names {
        assert_eq!(value(&text, &format!("{name}{labels}")), wanted, "{name}");
    }
    assert!(text.contains("# TYPE controller_runtime_reconcile_total counter\n"), "{text}");
    assert!(text.contains("# TYPE controller_runtime_reconcile_time_seconds histogram\n"));
    for bound in
        ["store_deltas", "store_tombstones", "events", "watch_changes", "handler_changes", "informers", "triggers"]
    {
        let used = value(&text, &format!(r#"kctl_bound_used{{bound="{bound}"}}"#));
        assert!(used < value(&text, &format!(r#"kctl_bound_limit{{bound="{bound}"}}"#)));
    }
}

#[tokio::test(start_paused = true)]
async fn queue_depth_merges_indistinct_priorities_under_one_label() {
    let contest = Contest::new();
    let faults = Faults::default();
    // Workers do not start without this cache, so no key leaves the queue.
    faults.add(Fault::Reject(403), |request| request.path.ends_with("/secrets"));
    let manager = App::new("does").controller::<does>().manager(faults.client(&contest.server)).await.unwrap();
    let (view, metrics) = (manager.view(), manager.metrics().clone());
    tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(1).await;
    let (_spec, queue) = &view.controllers()[0];
    for (least, expected) in [(0, None), (-2, Some(2))] {
        for priority in least..25 {
            queue.add(Add::new(ObjectKey::new(Some("default"), &format!("key{priority}"))).priority(priority));
        }
        let text = metrics.text(Format::Prometheus);
        let samples = || text.lines().filter_map(|line| line.strip_prefix("workqueue_depth{")?.split_once("} "));
        let depths = samples().map(|(_labels, depth)| depth.parse::<usize>().unwrap());
        assert_eq!(depths.sum::<usize>(), queue.stats().depth, "no key is left out, or counted twice: {text}");
        let beyond = samples().find(|(labels, _)| labels.contains(r#"priority="exceeded_cardinality_limit""#));
        assert_eq!(beyond.map(|(_, depth)| depth.parse().unwrap()), expected, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn reconciles_are_counted_by_what_they_come_to() {
    let contest = Contest::new();
    let faults = Faults::default();
    faults.add(Fault::Reject(409), |request| request.method == "POST" && request.path.ends_with("/secrets"));
    let metrics = run_with_metrics(&contest, &faults, false).await;
    for name in ["fine", "fails", "terminal", "panics", "hangs", "later"] {
        create(&contest, name).await;
    }
    advance_seconds(3).await;
    let text = metrics.text(Format::Prometheus);
    assert_eq!(value(&text, r#"controller_runtime_active_workers{controller="does"}"#), 1);
    assert!(seconds_of(&text, r#"workqueue_longest_running_processor_seconds{name="does",controller="does"}"#) > 2.9);
    advance_seconds(3).await;
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
    assert!(value(&text, r#"kctl_cache_bytes{name="",group="",version="v1",resource="configmaps"}"#) > 6 * 20);
    create(&contest, "conflicts").await;
    advance_seconds(1).await;
    let text = metrics.text(Format::Prometheus);
    let conflicts = value(&text, r#"controller_runtime_reconcile_total{controller="does",result="conflict"}"#);
    assert!(conflicts >= 1, "an outdated state is not an error");
    assert_eq!(value(&text, r#"controller_runtime_reconcile_errors_total{controller="does"}"#), 4);
}

#[tokio::test(start_paused = true)]
async fn conflict_that_is_a_failure_counts_as_error() {
    let contest = Contest::new();
    let metrics = run_with_metrics(&contest, &Faults::default(), false).await;
    for name in ["taken", "taken-for-an-hour"] {
        create(&contest, name).await;
    }
    advance_seconds(60).await;
    let text = metrics.text(Format::Prometheus);
    let n = |result: &str| {
        value(&text, &format!(r#"controller_runtime_reconcile_total{{controller="does",result="{result}"}}"#))
    };
    assert_eq!((n("error"), n("conflict")), (2, 0));
    let of = |name: &str| value(&text, &format!(r#"{name}{{controller="does"}}"#));
    assert_eq!(of("controller_runtime_reconcile_errors_total"), 2);
    assert_eq!(of("controller_runtime_terminal_reconcile_errors_total"), 1);
}

#[tokio::test(start_paused = true)]
async fn exhausted_keys_count_as_failing_until_resolved() {
    let contest = Contest::new();
    let metrics = run_with_metrics(&contest, &Faults::default(), false).await;
    let n_failing = async || {
        advance_seconds(3_600).await;
        value(&metrics.text(Format::Prometheus), r#"kctl_failing_keys{controller="does"}"#)
    };
    for name in ["fine", "fails", "terminal", "panics", "hangs"] {
        create(&contest, name).await;
    }
    assert_eq!(n_failing().await, 4);
    let configs = Api::<ConfigMap>::default_namespaced(contest.client.clone());
    let change = async |name: &str, change: kctl::Json| {
        configs.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    };
    change("terminal", kctl::json!({ "data": { "still": "fails" } })).await;
    assert_eq!(n_failing().await, 4);
    change("fails", kctl::json!({ "data": { "now": "succeeds" } })).await;
    assert_eq!(n_failing().await, 3);
    for (name, left) in [("terminal", 2), ("panics", 1), ("hangs", 0)] {
        configs.delete(name, &DeleteParams::default()).await.unwrap();
        assert_eq!(n_failing().await, left, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn leader_gauge_falls_when_the_lease_is_lost() {
    let contest = Contest::new();
    let faults = Faults::default();
    let metrics = run_with_metrics(&contest, &faults, true).await;
    advance_seconds(1).await;
    let status = || value(&metrics.text(Format::Prometheus), r#"leader_election_master_status{name="podset"}"#);
    assert_eq!(status(), 1);
    faults.add(Fault::Break, |request| request.path.contains("/leases"));
    advance_seconds(20).await;
    assert_eq!(status(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_and_timed_unless_they_watch() {
    let metrics = Metrics::default();
    let counter = RequestCounter::new("10.0.0.1:6443");
    counter.register(&metrics);
    let service = tower::service_fn(|request: http::Request<Body>| async move {
        let response = |code| Ok(http::Response::builder().status(code).body(Body::from(b"yes".to_vec())).unwrap());
        match request.uri().path() {
            "/gone" => Err("the connection broke"),
            "/slow" => {
                advance_seconds(3).await;
                response(200)
            }
            path => response(if path == "/no" { 403 } else { 200 }),
        }
    });
    let client = counter.layer(service);
    let requests = [
        ("GET", "/"),
        ("GET", "/slow"),
        ("GET", "/slow?a=b&watch=true"),
        ("GET", "/slow?watch=1"),
        ("POST", "/no"),
        ("PUT", "/gone"),
        ("BREW", "/?watch=false"),
    ];
    for (method, path) in requests {
        let body = if method == "POST" { b"a body".to_vec() } else { Vec::new() };
        let request = http::Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
        let response = client.clone().oneshot(request).await;
        assert_eq!(response.is_err(), path == "/gone");
        // The body of this response is read. Other responses are dropped with their body.
        if method == "POST" {
            assert_eq!(response.unwrap().into_body().collect().await.unwrap().to_bytes(), "yes");
        }
    }
    let text = metrics.text(Format::Prometheus);
    for (code, method, n) in [("200", "GET", 4), ("403", "POST", 1), ("<error>", "PUT", 1), ("200", "other", 1)] {
        let sample = format!(r#"rest_client_requests_total{{code="{code}",method="{method}",host="10.0.0.1:6443"}}"#);
        assert_eq!(value(&text, &sample), n);
    }
    let size = |of: &str, verb: &str| format!(r#"rest_client_{of}{{verb="{verb}",host="10.0.0.1:6443"}}"#);
    for (verb, sent, n_received, received) in [("POST", 6, 1, 3), ("GET", 0, 2, 0)] {
        assert_eq!(value(&text, &size("request_size_bytes_sum", verb)), sent, "{verb}");
        assert_eq!(value(&text, &size("response_size_bytes_count", verb)), n_received, "{verb}: watches have no size");
        assert_eq!(value(&text, &size("response_size_bytes_sum", verb)), received, "{verb}");
    }
    let timed = |verb: &str, of: &str| {
        format!(r#"rest_client_request_duration_seconds_{of}verb="{verb}",host="10.0.0.1:6443"}}"#)
    };
    for (verb, n) in [("GET", 2), ("POST", 1), ("PUT", 1), ("other", 1)] {
        assert_eq!(value(&text, &timed(verb, "count{")), n, "{verb}");
    }
    for (le, n) in [("0.005", 1), ("2", 1), ("4", 2), ("+Inf", 2)] {
        assert_eq!(value(&text, &timed("GET", &format!(r#"bucket{{le="{le}","#))), n, "{le}");
    }
}

#[tokio::test(start_paused = true)]
async fn request_that_times_out_counts_as_error() {
    let (metrics, counter) = (Metrics::default(), RequestCounter::new("here"));
    counter.register(&metrics);
    let silent =
        tower::service_fn(|_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, &str>>());
    for uri in ["/", "/?watch=true"] {
        let request = http::Request::get(uri).body(Body::empty()).unwrap();
        let response = tokio::time::timeout(Duration::from_secs(3), counter.layer(silent).oneshot(request)).await;
        assert!(response.is_err(), "{uri}");
    }
    let text = metrics.text(Format::Prometheus);
    assert_eq!(value(&text, r#"rest_client_requests_total{code="<error>",method="GET",host="here"}"#), 2);
    assert_eq!(value(&text, r#"rest_client_request_duration_seconds_count{verb="GET",host="here"}"#), 1);
}

#[tokio::test(start_paused = true)]
async fn names_of_objects_are_never_labels() {
    let contest = Contest::new();
    let metrics = run_with_metrics(&contest, &Faults::default(), true).await;
    advance_seconds(1).await;
    let n_before = metrics.text(Format::Prometheus).lines().count();
    for n in 0..50 {
        create(&contest, &format!("an-object-{n}")).await;
    }
    advance_seconds(5).await;
    let text = metrics.text(Format::Prometheus);
    assert!(!text.contains("an-object"));
    // Each priority adds a line when it is used for the first time.
    assert!(text.lines().count() <= n_before + 2, "{n_before} lines became {}", text.lines().count());
}

#[tokio::test(start_paused = true)]
async fn metrics_state_version_and_commit_of_the_app() {
    let contest = Contest::new();
    let info_labels = async |app: App| {
        let text = app.manager(contest.client.clone()).await.unwrap().metrics().text(Format::Prometheus);
        assert_eq!(text.matches("kctl_app_info{").count(), 1, "{text}");
        text.lines().find(|line| line.starts_with("kctl_app_info{")).unwrap().to_owned()
    };
    let known = App::new("does").version("1.2.3").commit(Some("abc123"));
    assert_eq!(info_labels(known).await, r#"kctl_app_info{name="does",version="1.2.3",commit="abc123"} 1"#);
    let unknown = App::new("does").commit(None);
    assert_eq!(info_labels(unknown).await, r#"kctl_app_info{name="does",version="",commit=""} 1"#);
}

#[tokio::test(start_paused = true)]
async fn managers_share_app_metrics() {
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

/// Metrics of client-go's requests that controller-runtime can register. `rest_client_dns_resolution_duration_seconds`
/// is left out, because a client layer can't measure name lookups.
const REQUEST_METRICS: [(&str, &str); 6] = [
    ("rest_client_rate_limiter_duration_seconds", "histogram"),
    ("rest_client_request_duration_seconds", "histogram"),
    ("rest_client_request_retries_total", "counter"),
    ("rest_client_request_size_bytes", "histogram"),
    ("rest_client_requests_total", "counter"),
    ("rest_client_response_size_bytes", "histogram"),
];

#[tokio::test(start_paused = true)]
async fn request_metrics_match_client_go_and_count_retries() {
    let (contest, faults) = (Contest::new(), Faults::default());
    faults.add(Fault::RejectFor(429, 2), |request| request.method == "POST" && request.path.ends_with("/secrets"));
    let (counter, inner) = (RequestCounter::new("example"), faults.client(&contest.server));
    let send = tower::service_fn(move |request| {
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    let client = Client::new(counter.layer(send), "default");
    let manager = App::new("does").controller::<does>().manager(client).await.unwrap();
    let metrics = manager.metrics().clone();
    counter.register(&metrics);
    tokio::spawn(manager.run(std::future::pending()));
    create(&contest, "conflicts").await;
    advance_seconds(3).await;
    faults.clear();
    advance_seconds(3).await;
    let text = metrics.text(Format::Prometheus);
    for (name, kind) in REQUEST_METRICS {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}: {text}");
    }
    let of = |name: &str, verb: &str| value(&text, &format!(r#"{name}{{verb="{verb}",host="example"}}"#));
    let repeated = r#"rest_client_request_retries_total{code="429",verb="POST",host="example"}"#;
    assert_eq!(value(&text, repeated), 2, "{text}");
    let requests = text.lines().filter(|line| line.starts_with("rest_client_requests_total{"));
    let posts = requests.filter(|line| line.contains(r#"method="POST""#)).map(|line| line.rsplit_once(' ').unwrap().1);
    let posts: u64 = posts.map(|n| n.parse::<u64>().unwrap()).sum();
    assert!(posts >= 3, "two rejections, and what was created: {text}");
    assert_eq!(of("rest_client_request_size_bytes_count", "POST"), posts);
    assert!(of("rest_client_request_size_bytes_sum", "POST") > 0);
    assert!(of("rest_client_response_size_bytes_sum", "GET") > 0, "lists were read");
    assert_eq!(of("rest_client_rate_limiter_duration_seconds_count", "POST"), posts);
}

#[tokio::test(start_paused = true)]
async fn user_metrics_are_exported_in_both_formats() {
    let metrics = Metrics::default();
    let (own, other) = (Counter::<u64>::default(), Counter::<u64>::default());
    metrics.register(|registry| registry.register("restarts", "Restarts", own.clone()));
    let mut registry = Registry::default();
    registry.register("uploads", "Uploads", other.clone());
    metrics.add_registry(registry);
    own.inc_by(2);
    other.inc_by(3);
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let text = metrics.text(format);
        assert_eq!((value(&text, "restarts_total"), value(&text, "uploads_total")), (2, 3));
        assert_eq!(text.matches("# EOF\n").count(), usize::from(format == Format::OpenMetrics));
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_of_alerts_and_dashboards_exist_initially() {
    let contest = Contest::new();
    let metrics = run_with_metrics(&contest, &Faults::default(), true).await;
    let requests = RequestCounter::new("example");
    requests.register(&metrics);
    let yes = tower::service_fn(|_: http::Request<Body>| async { Ok::<_, &str>(http::Response::new(Body::empty())) });
    requests.layer(yes).oneshot(http::Request::new(Body::empty())).await.unwrap();
    advance_seconds(1).await;
    let text = metrics.text(Format::Prometheus);
    let options = kctl_runtime::manifest::RbacOptions::new("does", "default");
    let manager = kctl_runtime::manifest::ManagerOptions::default().with_leader_election().with_metrics();
    let manifests = kctl_runtime::manifest::monitoring(&options, manager).unwrap();
    let mut queries = Vec::new();
    for rule in manifests[1].object["spec"]["groups"][0]["rules"].as_array().unwrap() {
        queries.push(rule["expr"].as_str().unwrap().to_owned());
        for text in ["summary", "description"] {
            assert!(!rule["annotations"][text].as_str().unwrap().is_empty(), "{rule}");
        }
    }
    let dashboard: serde_json::Value =
        serde_json::from_str(manifests[2].object["data"]["does.json"].as_str().unwrap()).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        queries.extend(panel["targets"].as_array().unwrap().iter().map(|of| of["expr"].as_str().unwrap().to_owned()));
    }
    assert!(queries.len() > 25, "{queries:?}");
    let named = regex::Regex::new(r"([a-z_]+)\{").unwrap();
    let plain = regex::Regex::new(r"\b(?:kctl|workqueue|controller_runtime|informer|rest_client|process)_\w+").unwrap();
    for query in &queries {
        assert!(query.contains(r#"namespace="default",job="does-metrics""#), "{query}");
        let names: Vec<&str> = named.captures_iter(query).map(|found| found.get(1).unwrap().as_str()).collect();
        for name in plain.find_iter(query) {
            assert!(names.contains(&name.as_str()), "{query}: {} is of every program", name.as_str());
        }
        for name in names.into_iter().filter(|name| *name != "up") {
            let there =
                text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
            assert!(there, "{query}: there is no {name}");
        }
    }
}
