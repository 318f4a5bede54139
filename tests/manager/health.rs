//! Probes: readiness reflects failing caches and elections, and liveness only reports failures that a restart fixes.

use kctl::{
    kube::{Api, Client, api::PostParams},
    manager::{View, lease::ElectionConfig},
    prelude::*,
    watches::{WatchConfig, Watches},
};
use kctl_runtime::manager::health::{Check, Health};
use kctl_tests::{Fault, Faults, RequestSummary};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::lease_candidates::{Contest, advance_seconds, config};

#[controller(owns = Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

/// A manager whose health is checked without a socket.
struct Process {
    faults: Faults,
    health: Health,
    _running: JoinHandle<()>,
}

async fn start(contest: &Contest, election: Option<ElectionConfig>, fault: Option<Fault>) -> Process {
    let faults = Faults::default();
    if let Some(fault) = fault {
        faults.add(fault, |request: &RequestSummary| request.reads("secrets"));
    }
    start_with(contest, election, faults).await
}

async fn start_with(contest: &Contest, election: Option<ElectionConfig>, faults: Faults) -> Process {
    let mut manager =
        App::new("configs").controller::<configs>().manager(faults.client(&contest.server)).await.unwrap();
    if let Some(election) = election {
        manager = manager.elect(election).unwrap();
    }
    let health = Health::new(manager.view(), manager.metrics().clone());
    let running = tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    Process { faults, health, _running: running }
}

impl Process {
    /// Returns the readiness checks, one line each.
    fn ready(&self) -> Vec<String> {
        let lines = self.health.ready().into_iter().map(|check| match check.result {
            Ok(note) => format!("{}: {note}", check.name),
            Err(reason) => format!("{} FAILS: {reason}", check.name),
        });
        lines.collect()
    }

    fn dead(&self) -> Vec<String> {
        let failed = self.health.live().into_iter();
        failed.filter_map(|check| check.result.err().map(|reason| format!("{}: {reason}", check.name))).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_covers_kinds_watched_at_run_time() {
    let contest = Contest::new();
    let faults = Faults::default();
    let manager = App::new("configs").controller::<configs>().manager(faults.client(&contest.server)).await.unwrap();
    let (view, watches, metrics) = (manager.view(), manager.watches(), manager.metrics().clone());
    let running = tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    let process = Process { faults, health: Health::new(view, metrics), _running: running };
    advance_seconds(5).await;
    let declared = ["cache-configmaps: 0 objects", "cache-secrets: 0 objects"];
    assert_eq!(process.ready(), [&declared[..], &["ping: "]].concat());

    let nodes = watches.watch::<Node>(WatchConfig::of::<Node>()).await.unwrap();
    let _declared_too = watches.watch::<Secret>(WatchConfig::of::<Secret>()).await.unwrap();
    advance_seconds(5).await;
    assert_eq!(process.ready(), [&declared[..], &["watch-nodes: 0 objects", "ping: "]].concat());

    process.faults.add(Fault::Reject(403), |request: &RequestSummary| request.reads("nodes"));
    process.faults.cut_watches();
    advance_seconds(60).await;
    let rejected = process.ready().into_iter().find(|line| line.starts_with("watch-nodes")).unwrap();
    assert!(
        rejected.starts_with("watch-nodes FAILS: ") && rejected.contains("`list` and `watch` on `nodes`"),
        "{rejected}"
    );
    assert_eq!(process.dead(), [""; 0], "a new start would not help");

    drop(nodes);
    advance_seconds(5).await;
    assert_eq!(process.ready(), [&declared[..], &["ping: "]].concat());
}

#[tokio::test(start_paused = true)]
async fn process_is_ready_once_its_caches_are_full() {
    let contest = Contest::new();
    let process = start(&contest, None, Some(Fault::Delay(Duration::from_secs(5)))).await;
    advance_seconds(1).await;
    let waits = "cache-secrets FAILS: the first list is not complete yet";
    assert_eq!(process.ready(), ["cache-configmaps: 0 objects", waits, "ping: "]);
    advance_seconds(20).await;
    assert_eq!(process.ready(), ["cache-configmaps: 0 objects", "cache-secrets: 0 objects", "ping: "]);
}

#[tokio::test(start_paused = true)]
async fn readiness_names_the_permission_that_is_missing() {
    let contest = Contest::new();
    let process = start(&contest, None, Some(Fault::Reject(403))).await;
    advance_seconds(1).await;
    let ready = process.ready();
    assert!(ready[1].starts_with("cache-secrets FAILS: list secrets: "), "{ready:?}");
    assert!(ready[1].contains("give its service account `list` and `watch` on `secrets`"), "{ready:?}");
    assert_eq!(process.dead(), [""; 0], "a new start would not help");
    process.faults.clear();
    advance_seconds(60).await;
    assert_eq!(process.ready()[1], "cache-secrets: 0 objects");
}

#[tokio::test(start_paused = true)]
async fn standby_is_ready_and_names_the_leader() {
    let contest = Contest::new();
    let leader = start(&contest, Some(config("a")), None).await;
    advance_seconds(1).await;
    let standby = start(&contest, Some(config("b")), None).await;
    advance_seconds(1).await;
    assert_eq!(leader.ready()[2], "leader-election: leads");
    assert_eq!(standby.ready()[2], "leader-election: standby; a leads");
}

#[tokio::test(start_paused = true)]
async fn process_without_lease_permission_is_not_ready() {
    let contest = Contest::new();
    let process = start(&contest, None, None).await;
    drop(process);
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request: &RequestSummary| request.path.contains("/leases"));
    let client: Client = faults.client(&contest.server);
    let manager =
        App::new("configs").controller::<configs>().manager(client).await.unwrap().elect(config("a")).unwrap();
    let health = Health::new(manager.view(), manager.metrics().clone());
    let _running = tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(1).await;
    let election = health.ready().into_iter().find(|check| check.name == "leader-election").unwrap();
    let reason = election.result.unwrap_err();
    assert!(reason.starts_with("get the lease default/podset: "), "{reason}");
}

/// Returns the readiness checks of a standby during an outage, and a minute after it.
async fn ready_after_outage(fault: Fault, concerns: fn(&RequestSummary) -> bool) -> (Vec<String>, Vec<String>) {
    let contest = Contest::new();
    let _leader = start(&contest, Some(config("a")), None).await;
    advance_seconds(1).await;
    let standby = start(&contest, Some(config("b")), None).await;
    advance_seconds(1).await;
    standby.faults.add(fault, concerns);
    standby.faults.cut_watches();
    advance_seconds(10).await;
    let during = standby.ready();
    standby.faults.clear();
    advance_seconds(60).await;
    (during, standby.ready())
}

#[tokio::test(start_paused = true)]
async fn standby_is_ready_again_after_an_outage() {
    for fault in [Fault::Break, Fault::Reject(500), Fault::Reject(403), Fault::LoseResponse] {
        let (during, after) = ready_after_outage(fault, |_| true).await;
        assert!(during.iter().any(|line| line.starts_with("leader-election FAILS: get ")), "{fault:?}: {during:?}");
        let wanted = ["cache-configmaps: 0 objects", "cache-secrets: 0 objects", "leader-election: standby; a leads"];
        assert_eq!(after, [&wanted[..], &["ping: "]].concat(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_racing_to_create_lease_are_ready() {
    let contest = Contest::new();
    let mut processes = Vec::new();
    for identity in ["a", "b"] {
        let faults = Faults::default();
        // Both replicas read the missing Lease before either creates it.
        faults
            .add(Fault::Delay(Duration::from_millis(100)), |request: &RequestSummary| request.path.contains("/leases"));
        processes.push(start_with(&contest, Some(config(identity)), faults).await);
    }
    advance_seconds(1).await;
    let creates = contest.requests().into_iter().filter(|request| request.starts_with("create"));
    assert_eq!(creates.collect::<Vec<_>>(), ["create 201", "create 409"]);
    for _ in 0..30 {
        let mut election_checks: Vec<String> = processes.iter().map(|process| process.ready()[2].clone()).collect();
        election_checks.sort();
        let leader = contest.lease_state().await.0;
        let standby = [
            format!("leader-election: standby; {leader} leads"),
            "leader-election: standby; no process leads yet".into(),
        ];
        assert!(
            election_checks[0] == "leader-election: leads" && standby.contains(&election_checks[1]),
            "{election_checks:?}"
        );
        advance_seconds(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_without_lease_permission_is_unready_until_granted() {
    let contest = Contest::new();
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request: &RequestSummary| {
        request.path.contains("/leases") && request.method != "GET"
    });
    let process = start_with(&contest, Some(config("a")), faults).await;
    for _ in 0..30 {
        // The check also has to fail between two tries, although each starts with a successful read of the Lease.
        tokio::time::sleep(Duration::from_millis(310)).await;
        let check = process.ready()[2].clone();
        assert!(check.starts_with("leader-election FAILS: create the lease default/podset: "), "{check}");
    }
    process.faults.clear();
    advance_seconds(5).await;
    assert_eq!(process.ready()[2], "leader-election: leads");
}

#[tokio::test(start_paused = true)]
async fn candidate_without_permission_is_ready_once_another_leads() {
    let contest = Contest::new();
    let faults = Faults::default();
    faults.add(Fault::Reject(500), |request: &RequestSummary| {
        request.path.contains("/leases") && request.method != "GET"
    });
    let process = start_with(&contest, Some(config("a")), faults).await;
    advance_seconds(1).await;
    assert!(process.ready()[2].starts_with("leader-election FAILS: "), "{:?}", process.ready());
    process.faults.clear();
    let _leader = start(&contest, Some(config("b")), None).await;
    advance_seconds(10).await;
    assert_eq!(process.ready()[2], "leader-election: standby; b leads");
}

#[tokio::test(start_paused = true)]
async fn new_leader_becomes_ready_after_comparing_caches() {
    let contest = Contest::new();
    let faults = Faults::default();
    // Only the comparison of the cache with the newest state fails, which lists metadata. Lists and watches of the
    // cache work.
    let compares =
        |request: &RequestSummary| request.reads("secrets") && request.accept.contains("PartialObjectMetadataList");
    faults.add(Fault::Reject(500), compares);
    let process = start_with(&contest, Some(config("a")), faults).await;
    advance_seconds(5).await;
    assert!(process.ready()[1].starts_with("cache-secrets FAILS: list secrets: "), "{:?}", process.ready());
    process.faults.clear();
    advance_seconds(10).await;
    assert_eq!(process.ready()[..2], ["cache-configmaps: 0 objects", "cache-secrets: 0 objects"]);
}

/// Reconciles objects in two namespaces.
#[controller(name = "limited", namespaces = ["closed", "open"])]
async fn limited(_config: Arc<ConfigMap>, _cx: Context<limited>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Starts a leader whose requests for the namespace `closed` are rejected, or only those that compare its cache.
async fn start_limited(contest: &Contest, concerns: fn(&RequestSummary) -> bool) -> (Process, Watches, View) {
    let faults = Faults::default();
    faults.add(Fault::Reject(403), concerns);
    let manager = App::new("limited").controller::<limited>().manager(faults.client(&contest.server)).await.unwrap();
    let manager = manager.elect(config("a")).unwrap();
    let (view, watches, metrics) = (manager.view(), manager.watches(), manager.metrics().clone());
    let running = tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    (Process { faults, health: Health::new(view.clone(), metrics), _running: running }, watches, view)
}

#[tokio::test(start_paused = true)]
async fn failing_namespace_fails_readiness_until_removed() {
    let contest = Contest::new();
    let (process, watches, _view) =
        start_limited(&contest, |request| request.path.contains("/namespaces/closed/")).await;
    for _ in 0..20 {
        // The other namespace is listed and watched again without failures, which must not hide the error.
        advance_seconds(60).await;
        let check = process.ready()[0].clone();
        assert!(check.starts_with("cache-configmaps FAILS: list configmaps: "), "{check}");
    }
    watches.remove_namespace("closed").await.unwrap();
    advance_seconds(1).await;
    assert_eq!(process.ready()[0], "cache-configmaps: 0 objects");
}

#[tokio::test(start_paused = true)]
async fn controller_starts_after_its_incomparable_namespace_is_removed() {
    let contest = Contest::new();
    let compares = |request: &RequestSummary| {
        request.path.contains("/namespaces/closed/configmaps") && request.accept.contains("PartialObjectMetadataList")
    };
    let metadata = ObjectMeta { name: Some("x".into()), namespace: Some("open".into()), ..ObjectMeta::default() };
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("open".into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::all(contest.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    Api::namespaced(contest.client.clone(), "open").create(&PostParams::default(), &object).await.unwrap();
    let (process, watches, view) = start_limited(&contest, compares).await;
    advance_seconds(5).await;
    assert!(process.ready()[0].starts_with("cache-configmaps FAILS: list configmaps: "), "{:?}", process.ready());
    watches.remove_namespace("closed").await.unwrap();
    advance_seconds(10).await;
    assert_eq!(process.ready()[0], "cache-configmaps: 1 objects");
    assert_eq!(view.controllers()[0].1.stats().adds, 1, "its handlers run");
}

#[tokio::test(start_paused = true)]
async fn idle_workers_despite_waiting_keys_are_reported() {
    let contest = Contest::new();
    let manager = App::new("configs").controller::<configs>().manager(contest.client.clone()).await.unwrap();
    let view = manager.view();
    let health = Health::new(view.clone(), manager.metrics().clone());
    let running = tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(1).await;
    // The workers have stopped, but caches and queue remain.
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    view.controllers()[0].1.add(kctl::key::ObjectKey::new(Some("default"), "x"));
    let dead = || {
        let failed =
            health.live().into_iter().filter_map(|check| check.result.err().map(|reason| (check.name, reason)));
        failed.collect::<Vec<_>>()
    };
    assert_eq!(dead(), []);
    advance_seconds(59).await;
    assert_eq!(dead(), []);
    advance_seconds(1).await;
    let stuck = ("controller-configmap".to_owned(), "keys wait and no worker takes one, for 60 s".to_owned());
    assert_eq!(dead(), [stuck]);
}

#[controller]
async fn endless(_node: Arc<Node>, _cx: Context<endless>) -> Result<Action> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn long_reconcile_is_reported_without_failing_liveness() {
    let contest = Contest::new();
    let manager = App::new("endless").controller::<endless>().manager(contest.client.clone()).await.unwrap();
    let health = Health::new(manager.view(), manager.metrics().clone());
    let _running = tokio::spawn(manager.run(std::future::pending()));
    let node = Node { metadata: ObjectMeta { name: Some("n1".into()), ..ObjectMeta::default() }, ..Node::default() };
    Api::all(contest.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    let says = || health.live().into_iter().find(|check| check.name == "controller-node").unwrap().result;
    advance_seconds(50).await;
    assert_eq!(says(), Ok(String::new()));
    advance_seconds(3_550).await;
    let message = says().unwrap();
    assert!(message.starts_with("n1 has been reconciled for 3") && message.ends_with(" s"), "{message}");
}

/// Creates a `Secret` and a `ServiceAccount` in the first reconcile.
#[controller(owns = Secret, owns = ServiceAccount, timeout = "1s", name = "pairs")]
async fn pairs(config: Arc<ConfigMap>, cx: Context<pairs>) -> Result<Action> {
    let (secrets, accounts) = (cx.owned::<Secret>(), cx.owned::<ServiceAccount>());
    if secrets.is_empty() && accounts.is_empty() {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        let secret = secrets.create(Secret { metadata: metadata.clone(), ..Secret::default() }).await;
        accounts.create(ServiceAccount { metadata, ..ServiceAccount::default() }).await?;
        secret?;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn slow_lists_after_lost_responses_pass_liveness() {
    let contest = Contest::new();
    let faults = Faults::default();
    let manager = App::new("pairs").controller::<pairs>().manager(faults.client(&contest.server)).await.unwrap();
    let health = Health::new(manager.view(), manager.metrics().clone());
    let running = tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    let process = Process { faults, health, _running: running };
    advance_seconds(1).await;
    process.faults.add(Fault::LoseResponse, |request: &RequestSummary| request.method == "POST");
    process.faults.add(Fault::DelayResponse(Duration::from_secs(50)), |request: &RequestSummary| {
        !request.is_watch && (request.reads("secrets") || request.reads("serviceaccounts"))
    });
    let metadata = ObjectMeta { name: Some("x".into()), ..ObjectMeta::default() };
    let config = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &config).await.unwrap();
    let note = || process.health.live().into_iter().find(|check| check.name == "controller-pairs").unwrap().result;
    for _ in 0..9 {
        advance_seconds(10).await;
        assert_eq!(process.dead(), [""; 0], "a restart would not help");
    }
    let message = note().unwrap();
    assert!(message.starts_with("default/x has been reconciled for "), "the lists take longer: {message:?}");
    advance_seconds(20).await;
    assert_eq!(note(), Ok(String::new()), "the function has run");
}

#[controller]
async fn accounts(_account: Arc<ServiceAccount>, _cx: Context<accounts>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn stuck_workers_are_reported_while_other_caches_fill() {
    let contest = Contest::new();
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request: &RequestSummary| request.reads("secrets"));
    let app = App::new("both").controller::<configs>().controller::<accounts>();
    let manager = app.manager(faults.client(&contest.server)).await.unwrap();
    let view = manager.view();
    let health = Health::new(view.clone(), manager.metrics().clone());
    let running = tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(1).await;
    // The workers have stopped, but caches and queues remain. The caches of one controller are complete.
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    for (_, queue) in view.controllers() {
        queue.add(kctl::key::ObjectKey::new(Some("default"), "x"));
    }
    let dead = || health.live().into_iter().filter(|check| check.result.is_err()).map(|check| check.name);
    assert_eq!(dead().collect::<Vec<_>>(), [""; 0]);
    advance_seconds(60).await;
    assert_eq!(dead().collect::<Vec<_>>(), ["controller-serviceaccount"]);
}

#[tokio::test(start_paused = true)]
async fn standby_whose_keys_await_the_lease_is_healthy() {
    let contest = Contest::new();
    let metadata = ObjectMeta { name: Some("x".into()), ..ObjectMeta::default() };
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    let _leader = start(&contest, Some(config("a")), None).await;
    advance_seconds(1).await;
    let standby = start(&contest, Some(config("b")), None).await;
    for _ in 0..20 {
        advance_seconds(10).await;
        assert_eq!(standby.dead(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn leader_whose_keys_await_a_comparison_is_healthy() {
    let contest = Contest::new();
    let compares = |request: &RequestSummary| request.accept.contains("PartialObjectMetadataList");
    let (process, _watches, view) = start_limited(&contest, compares).await;
    advance_seconds(5).await;
    assert!(view.leadership().unwrap().is_leading());
    view.controllers()[0].1.add(kctl::key::ObjectKey::new(Some("open"), "x"));
    for _ in 0..20 {
        assert_eq!(process.dead(), [""; 0], "a restart would not help");
        advance_seconds(10).await;
    }
}

/// Requests a page over a real connection. Returns the status line and the body.
async fn get(address: &str, path: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[tokio::test]
async fn http_probes_follow_kubernetes_component_conventions() {
    let contest = Contest::new();
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request: &RequestSummary| request.reads("secrets"));
    let manager = App::new("configs").controller::<configs>().manager(faults.client(&contest.server)).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let view = manager.view();
    let _running = tokio::spawn(manager.serve_health(listener).run(std::future::pending()));
    view.sources()[0].store().wait_until_synced().await;
    let (ok, bad, none) = ("HTTP/1.1 200 OK", "HTTP/1.1 500 Internal Server Error", "HTTP/1.1 404 Not Found");
    let ask = async |path: &str| get(&address, path, "").await;
    assert_eq!(ask("/healthz").await, (ok.into(), "ok".into()));
    assert_eq!(ask("/livez/ping").await, (ok.into(), "ok".into()));
    assert_eq!(ask("/readyz/cache-configmaps").await, (ok.into(), "ok".into()));
    let (status, body) = ask("/livez?verbose").await;
    let lines = [
        "[+]store-configmaps ok",
        "[+]store-secrets ok",
        "[+]controller-configmap ok",
        "[+]ping ok",
        "livez check passed",
    ];
    assert_eq!((status.as_str(), body.lines().collect::<Vec<_>>()), (ok, lines.to_vec()));
    let (status, body) = ask("/readyz").await;
    assert_eq!(status, bad);
    assert!(body.starts_with("[+]cache-configmaps ok: 0 objects\n[-]cache-secrets failed: "), "{body}");
    assert!(body.ends_with("[+]ping ok\nreadyz check failed\n"), "{body}");
    assert_eq!(ask("/readyz?exclude=cache-secrets").await, (ok.into(), "ok".into()));
    let (status, body) = ask("/readyz?exclude=cache-secrets&exclude=none&verbose").await;
    assert_eq!(status, ok);
    assert!(
        body.contains("[+]cache-secrets excluded: ok\n") && body.contains("warn: no check of the name \"none\""),
        "{body}"
    );
    assert_eq!(ask("/readyz/nothing").await.0, none);
    assert_eq!(ask("/").await.0, none);
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream
        .write_all(b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 405"), "{response}");
}

/// Starts a probe server for a controller whose caches are filled. Returns its address and task.
async fn start_probe_server() -> (String, tokio::task::JoinHandle<()>) {
    let contest = Contest::new();
    let manager = App::new("configs").controller::<configs>().manager(contest.client.clone()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let running = tokio::spawn(async move {
        let _contest = contest;
        manager.serve_health(listener).run(std::future::pending()).await.unwrap();
    });
    (address, running)
}

#[tokio::test]
async fn probes_are_answered_despite_stalled_clients() {
    let begun = [
        "",
        "GET /livez HTTP/1.1\r\nhost: x\r\n",
        "POST /livez HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
        "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    for begun in begun {
        let (address, _running) = start_probe_server().await;
        let mut others = Vec::new();
        // Far more connections than the server serves concurrently.
        for _ in 0..300 {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            // The server may have closed the connection already.
            let _sent = stream.write_all(begun.as_bytes()).await;
            others.push(stream);
        }
        let response = tokio::time::timeout(Duration::from_secs(60), get(&address, "/livez", "")).await;
        assert_eq!(response.expect(begun).1, "ok", "{begun:?}");
    }
}

#[tokio::test]
async fn unusable_listen_address_is_named_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().map(|address| (address.to_string(), taken)).unwrap();
    let bind = async |address: &str| kctl_runtime::manager::serve::bind("--health-probe-bind-address", address).await;
    let error = bind(&taken.0).await.unwrap_err().to_string();
    let port = taken.0.rsplit(':').next().unwrap();
    let wanted = format!(
        "--health-probe-bind-address={}: port {port} is in use; stop what uses it, or choose another port",
        taken.0
    );
    assert_eq!(error, wanted);
    for wrong in ["8081", "here", "127.0.0.1:http", ":70000"] {
        let error = bind(wrong).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("--health-probe-bind-address={wrong}: not an address")), "{error}");
    }
    for off in ["", "0"] {
        assert!(bind(off).await.unwrap().is_none());
    }
    let all = bind(":0").await.unwrap().unwrap();
    assert!(all.local_addr().unwrap().ip().is_unspecified());
}

/// Reconciles a part of the objects that `configs` reconciles.
#[controller(primary(selector = "app"), name = "labelled")]
async fn labelled(_config: Arc<ConfigMap>, _cx: Context<labelled>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn caches_with_different_selectors_have_different_names() {
    let contest = Contest::new();
    let app = App::new("configs").controller::<configs>().controller::<labelled>();
    let manager = app.manager(contest.client.clone()).await.unwrap();
    let health = Health::new(manager.view(), manager.metrics().clone());
    let names = |checks: Vec<Check>| checks.into_iter().map(|check| check.name).collect::<Vec<_>>();
    let caches = ["cache-configmaps", "cache-configmaps-2", "cache-secrets", "ping"];
    assert_eq!(names(health.ready()), caches);
    let stores = ["store-configmaps", "store-configmaps-2", "store-secrets"];
    assert_eq!(names(health.live())[..3], stores);
}
