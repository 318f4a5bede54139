//! Tests each fault as a client sees it.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, VersionMatch, WatchEvent, WatchParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::{ApiServer, User};

struct World {
    server: ApiServer,
    faults: Faults,
    connection: Connection,
}

impl World {
    fn new() -> Self {
        let (server, faults) = (ApiServer::new(), Faults::seeded(0));
        let connection = faults.connection("app");
        Self { server, faults, connection }
    }

    fn configs(&self) -> Api<ConfigMap> {
        Api::default_namespaced(Client::new(self.server.faulty(User::admin(), &self.connection), "default"))
    }

    /// Creates or changes an object, without faults.
    async fn set(&self, name: &str, text: &str) {
        let configs = Api::<ConfigMap>::default_namespaced(Client::new(self.server.service(), "default"));
        let config =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "t": text } });
        configs.patch(name, &PatchParams::apply("test"), &Patch::Apply(config)).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        let configs = Api::<ConfigMap>::default_namespaced(Client::new(self.server.service(), "default"));
        configs.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Watches from the present revision.
    async fn watch_from_now(&self) -> Arc<Mutex<Vec<String>>> {
        let version = self.server.revision().to_string();
        log_events(self.configs().watch(&WatchParams::default(), &version).await.unwrap().boxed())
    }
}

/// Logs each event with the time in seconds; the end of the watch is logged as `end`.
fn log_events(mut events: BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>>) -> Arc<Mutex<Vec<String>>> {
    let (log, begun) = (Arc::<Mutex<Vec<String>>>::default(), Instant::now());
    let lines = log.clone();
    tokio::spawn(async move {
        loop {
            let line = match events.try_next().await {
                Ok(Some(WatchEvent::Added(config))) => format!("added {}", text(&config)),
                Ok(Some(WatchEvent::Modified(config))) => format!("modified {}", text(&config)),
                Ok(Some(WatchEvent::Deleted(config))) => format!("deleted {}", text(&config)),
                Ok(Some(WatchEvent::Error(status))) => format!("error {}", status.code),
                Ok(Some(WatchEvent::Bookmark(_))) => continue,
                Ok(None) | Err(_) => "end".into(),
            };
            lines.lock().push(format!("{} s: {line}", begun.elapsed().as_secs()));
            if line == "end" {
                return;
            }
        }
    });
    log
}

fn text(config: &ConfigMap) -> String {
    let text = config.data.as_ref().and_then(|data| data.get("t")).cloned().unwrap_or_default();
    format!("{} {text}", config.name_any())
}

fn config(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::core::ObjectMeta { name: Some(name.into()), ..Default::default() },
        ..ConfigMap::default()
    }
}

#[tokio::test(start_paused = true)]
async fn writes_fail_before_or_after_they_took_effect() {
    let reject = |code, moment| RequestFault::Reject { code, retry_after: Some(3), moment };
    let cases = [
        (reject(409, Moment::Before), Some(409), false),
        (reject(429, Moment::Before), Some(429), false),
        (reject(500, Moment::After), Some(500), true),
        (RequestFault::Reset(Moment::Before), None, false),
        (RequestFault::Reset(Moment::After), None, true),
    ];
    for (fault, code, took_effect) in cases {
        let world = World::new();
        world.faults.add(Rule::request(fault, RequestSummary::is_write).times(1));
        let failed = world.configs().create(&PostParams::default(), &config("a")).await.unwrap_err();
        let answered = match &failed {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        };
        assert_eq!(answered, code, "{fault:?}: {failed:?}");
        assert_eq!(world.configs().get_opt("a").await.unwrap().is_some(), took_effect, "{fault:?}");
        assert_eq!(world.faults.counts().values().sum::<u64>(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_requests_and_slow_answers_take_their_time() {
    for (fault, there_at_once) in [
        (RequestFault::Delay(Duration::from_secs(5)), false),
        (RequestFault::DelayResponse(Duration::from_secs(5)), true),
    ] {
        let world = World::new();
        world.faults.add(Rule::request(fault, RequestSummary::is_write));
        let (configs, begun) = (world.configs(), Instant::now());
        let created = tokio::spawn(async move { configs.create(&PostParams::default(), &config("a")).await });
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.configs().get_opt("a").await.unwrap().is_some(), there_at_once, "{fault:?}");
        created.await.unwrap().unwrap();
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn crashed_process_sends_and_receives_nothing() {
    for (moment, took_effect) in [(Moment::Before, false), (Moment::After, true)] {
        let world = World::new();
        world.faults.add(Rule::request(RequestFault::Crash(moment), RequestSummary::is_write).nth(2));
        let configs = world.configs();
        configs.create(&PostParams::default(), &config("a")).await.unwrap();
        let (posts, b) = (PostParams::default(), config("b"));
        let lost = timeout(Duration::from_secs(60), configs.create(&posts, &b));
        assert!(lost.await.is_err(), "the response reaches no client");
        world.connection.wait_until_crashed().await;
        let c = config("c");
        assert!(timeout(Duration::from_secs(60), configs.create(&posts, &c)).await.is_err());
        let there: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .filter(|name| world.server.object("", "configmaps", "default", name).is_some())
            .collect();
        assert_eq!(there, if took_effect { vec!["a", "b"] } else { vec!["a"] });
    }
}

#[tokio::test(start_paused = true)]
async fn stale_list_returns_an_old_state_if_allowed() {
    let world = World::new();
    world.set("a", "1").await;
    let revision = world.server.revision();
    world.set("a", "2").await;
    world.set("b", "1").await;
    let stale = RequestFault::Stale { past: StaleState::Revision(revision), lag: Duration::from_secs(3) };
    world.faults.add(Rule::request(stale, |_| true));
    let newest = vec!["a 2", "b 1"];
    let cases = [
        (ListParams::default(), newest.clone()),
        (ListParams::default().match_any(), vec!["a 1"]),
        (ListParams::default().at(&revision.to_string()).matching(VersionMatch::NotOlderThan), vec!["a 1"]),
        (ListParams::default().at(&(revision + 1).to_string()).matching(VersionMatch::NotOlderThan), newest),
    ];
    for (params, expected) in cases {
        let list = world.configs().list(&params).await.unwrap();
        assert_eq!(list.items.iter().map(text).collect::<Vec<_>>(), expected, "{params:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stale_changes_count_per_resource() {
    // No object existed before the first change.
    let cases = [(0, vec!["a 2", "b 1"]), (1, vec!["a 2"]), (2, vec!["a 1"]), (3, vec![]), (9, vec![])];
    for (n_changes, expected) in cases {
        let world = World::new();
        for (name, text) in [("a", "1"), ("a", "2"), ("b", "1")] {
            world.set(name, text).await;
        }
        let (past, lag) = (StaleState::Changes(n_changes), Duration::from_secs(3));
        world.faults.add(Rule::request(RequestFault::Outdated { past, lag }, |request| request.verb == "list"));
        let list = world.configs().list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items.iter().map(text).collect::<Vec<_>>(), expected, "{n_changes} changes ago");
    }
}

#[tokio::test(start_paused = true)]
async fn outdated_server_lists_and_watches_from_old_state() {
    let world = World::new();
    world.set("a", "1").await;
    let revision = world.server.revision();
    world.set("a", "2").await;
    let outdated = RequestFault::Outdated { past: StaleState::Revision(revision), lag: Duration::from_secs(3) };
    world.faults.add(Rule::request(outdated, |request| request.verb != "get"));
    for request in [ListParams::default(), ListParams::default().match_any()] {
        let list = world.configs().list(&request).await.unwrap();
        assert_eq!(list.items.iter().map(text).collect::<Vec<_>>(), ["a 1"], "{request:?}");
        assert_eq!(list.metadata.resource_version, Some(revision.to_string()));
    }
    assert_eq!(text(&world.configs().get("a").await.unwrap()), "a 2");
    let from = revision.to_string();
    let log = log_events(world.configs().watch(&WatchParams::default(), &from).await.unwrap().boxed());
    sleep(Duration::from_secs(9)).await;
    assert_eq!(*log.lock(), ["3 s: modified a 2"]);
}

#[tokio::test(start_paused = true)]
async fn late_request_arrives_after_its_client_gave_up() {
    let (late, crash) = (RequestFault::Late(Duration::from_secs(2)), RequestFault::CrashLate(Duration::from_secs(2)));
    for (fault, ends) in [(late, false), (late, true), (crash, false)] {
        let world = World::new();
        world.set("a", "1").await;
        world.faults.add(Rule::request(fault, RequestSummary::is_write));
        let (configs, params) = (world.configs(), DeleteParams::default());
        assert!(timeout(Duration::from_secs(1), configs.delete("a", &params)).await.is_err());
        assert_eq!(world.connection.is_dead(), fault == crash);
        if ends {
            world.connection.disconnect();
        }
        let there = || world.server.object("", "configmaps", "default", "a").is_some();
        assert!(there());
        sleep(Duration::from_millis(1_500)).await;
        assert!(!there(), "{fault:?}, ends: {ends}");
    }
}

#[tokio::test(start_paused = true)]
async fn crash_wakes_every_connection_of_the_process() {
    let world = World::new();
    let waiting = [world.connection.clone(), world.connection.to("other"), world.connection.clone()]
        .map(|connection| tokio::spawn(async move { connection.wait_until_crashed().await }));
    tokio::task::yield_now().await;
    world.connection.disconnect();
    for woken in waiting {
        timeout(Duration::from_secs(1), woken).await.expect("a connection remains open after the crash").unwrap();
    }
    timeout(Duration::from_secs(1), world.connection.wait_until_crashed())
        .await
        .expect("the process has ended already");
}

#[tokio::test(start_paused = true)]
async fn cutting_one_connection_stops_requests_to_all_servers() {
    let (world, other) = (World::new(), ApiServer::new());
    let there = world.connection.to("other");
    world.faults.add(Rule::request(RequestFault::Reset(Moment::Before), |request| request.server == "other"));
    let on_other = Api::<ConfigMap>::default_namespaced(Client::new(other.faulty(User::admin(), &there), "default"));
    let (all, second) = (ListParams::default(), Duration::from_secs(1));
    assert!(world.configs().list(&all).await.is_ok());
    assert!(on_other.list(&all).await.is_err());
    there.disconnect();
    assert!(timeout(second, world.configs().list(&all)).await.is_err(), "the process has ended");
}

#[tokio::test(start_paused = true)]
async fn request_record_has_accepted_writes_and_trace() {
    let world = World::new();
    world.set("a", "1").await;
    world.set("a", "1").await;
    let configs = Api::<ConfigMap>::default_namespaced(Client::new(world.server.service(), "default"));
    configs.delete("a", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    configs.create(&dry, &config("b")).await.unwrap();
    configs.create(&PostParams::default(), &config("a")).await.unwrap_err();
    let review = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let review = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("content-type", "application/json")
        .header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"))
        .body(review.to_string().into_bytes())
        .unwrap();
    configs.into_client().request::<serde_json::Value>(review).await.unwrap();
    let records = world.server.requests();
    let records = &records[records.len() - 6..];
    let recorded: Vec<_> =
        records.iter().map(|r| (r.verb, r.dry_run, r.is_accepted_write(), r.trace.as_str())).collect();
    let expected = [
        ("patch", false, true, ""),
        ("patch", false, true, ""),
        ("delete", true, false, ""),
        ("create", true, false, ""),
        ("create", false, false, ""),
        ("create", false, false, trace),
    ];
    assert_eq!(recorded, expected);
}

#[tokio::test(start_paused = true)]
async fn stale_watch_lags_and_version_zero_starts_old() {
    let streams =
        |version: &str| format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={version}");
    let cases = [
        (streams(""), vec!["0 s: added a 2", "3 s: added b 1"]),
        (streams("0"), vec!["0 s: added a 1", "3 s: modified a 2", "3 s: added b 1"]),
        ("resourceVersion=0".into(), vec!["0 s: added a 1", "3 s: modified a 2", "3 s: added b 1"]),
        (String::new(), vec!["0 s: added a 2", "3 s: added b 1"]),
    ];
    for (query, expected) in cases {
        let world = World::new();
        world.set("a", "1").await;
        let stale =
            RequestFault::Stale { past: StaleState::Revision(world.server.revision()), lag: Duration::from_secs(3) };
        world.faults.add(Rule::request(stale, |_| true));
        world.set("a", "2").await;
        let path = format!("/api/v1/namespaces/default/configmaps?watch=true&{query}");
        let request = Request::get(path).body(Vec::new()).unwrap();
        let client = world.configs().into_client();
        let log = log_events(client.request_events(request).await.unwrap().boxed());
        sleep(Duration::from_millis(1)).await;
        world.set("b", "1").await;
        sleep(Duration::from_secs(9)).await;
        assert_eq!(*log.lock(), expected, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_faults_change_its_events() {
    let second = Duration::from_secs;
    let cases: [(EventFault, &[&str]); 5] = [
        (
            EventFault::Repeat,
            &["0 s: added a 1", "0 s: modified a 2", "0 s: modified a 2", "5 s: deleted a 2", "5 s: added b 1"],
        ),
        (EventFault::Close, &["0 s: added a 1", "0 s: modified a 2", "0 s: end"]),
        (EventFault::Expire, &["0 s: added a 1", "0 s: error 410", "0 s: end"]),
        (EventFault::Hold(second(8)), &["0 s: added a 1", "8 s: modified a 2", "8 s: deleted a 2", "8 s: added b 1"]),
        (EventFault::Skip(second(60)), &["0 s: added a 1", "5 s: deleted a 2", "5 s: added b 1"]),
    ];
    for (fault, expected) in cases {
        let world = World::new();
        world.faults.add(Rule::event(fault, |event| event.kind == "MODIFIED"));
        let log = world.watch_from_now().await;
        world.set("a", "1").await;
        world.set("a", "2").await;
        sleep(second(5)).await;
        world.delete("a").await;
        world.set("b", "1").await;
        sleep(second(60)).await;
        assert_eq!(*log.lock(), expected, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn skipped_state_arrives_after_the_pause() {
    let world = World::new();
    world.faults.add(Rule::event(EventFault::Skip(Duration::from_secs(10)), |_| true).nth(1));
    let log = world.watch_from_now().await;
    world.set("a", "1").await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(*log.lock(), ["10 s: added a 1"]);
}

#[tokio::test(start_paused = true)]
async fn object_replaced_during_pause_appears_modified() {
    let world = World::new();
    world.set("a", "1").await;
    world.faults.add(Rule::event(EventFault::Skip(Duration::from_secs(10)), |event| event.kind == "DELETED"));
    let log = world.watch_from_now().await;
    world.delete("a").await;
    world.set("a", "2").await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(*log.lock(), ["0 s: modified a 2"]);
}

#[tokio::test(start_paused = true)]
async fn only_the_rule_that_decides_is_notified() {
    let world = World::new();
    let notified = Arc::<Mutex<Vec<&str>>>::default();
    let note = |name: &'static str| {
        let notified = notified.clone();
        move || notified.lock().push(name)
    };
    let reject = |code| RequestFault::Reject { code, retry_after: None, moment: Moment::Before };
    let writes = |code| Rule::request(reject(code), RequestSummary::is_write);
    world.faults.add(writes(409).nth(1).then(note("first write")));
    world.faults.add(writes(500).times(1).then(note("hidden by the conflict")));
    world.faults.add(writes(429).nth(2).then(note("second write")));
    world.faults.add(Rule::event(EventFault::Repeat, |_| true).nth(1).then(note("event")));
    world.faults.add(Rule::event(EventFault::Close, |_| true).nth(1).then(note("hidden by the repetition")));
    let log = world.watch_from_now().await;
    for code in [409, 429] {
        let failed = world.configs().create(&PostParams::default(), &config("a")).await.unwrap_err();
        assert!(matches!(&failed, kube::Error::Api(status) if status.code == code), "{failed:?}");
    }
    world.set("a", "1").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*log.lock(), ["0 s: added a 1", "0 s: added a 1"]);
    assert_eq!(*notified.lock(), ["first write", "second write", "event"]);
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_series_of_chances() {
    async fn failures(seed: u64) -> Vec<bool> {
        let (server, faults) = (ApiServer::new(), Faults::seeded(seed));
        faults.add(Rule::request(RequestFault::Reset(Moment::Before), |_| true).per_mille(300));
        let client = Client::new(server.faulty(User::admin(), &faults.connection("app")), "default");
        let configs = Api::<ConfigMap>::default_namespaced(client);
        let mut failures = Vec::new();
        for _ in 0..40 {
            failures.push(configs.list(&ListParams::default()).await.is_err());
        }
        failures
    }
    let first = failures(1).await;
    assert_eq!(first, failures(1).await);
    assert_ne!(first, failures(2).await);
    assert!((4..20).contains(&first.iter().filter(|failed| **failed).count()));
}

#[tokio::test(start_paused = true)]
async fn frequent_bookmarks_advance_a_watch_temporarily() {
    let (every, lasts) = (Duration::from_millis(100), Duration::from_secs(3));
    for (fault, n_expected) in [(None, 1), (Some(RequestFault::Bookmarks { every, lasts }), 30)] {
        let world = World::new();
        if let Some(fault) = fault {
            world.faults.add(Rule::request(fault, |request| request.verb == "watch"));
        }
        let version = world.server.revision();
        let events = world.configs().watch(&WatchParams::default(), &version.to_string()).await.unwrap();
        // A change of another kind: only bookmarks show that the watch is past it.
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(Client::new(world.server.service(), ""));
        let namespace = json!({ "metadata": { "name": "other" } });
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
        let bookmarks = Arc::<Mutex<Vec<u64>>>::default();
        let seen = bookmarks.clone();
        let collect = events.boxed().try_for_each(move |event| {
            let WatchEvent::Bookmark(bookmark) = event else { panic!("{event:?}") };
            seen.lock().push(bookmark.metadata.resource_version.parse().unwrap());
            std::future::ready(Ok(()))
        });
        // The next one a minute after the frequent ones has not come yet.
        let _over = timeout(Duration::from_secs(61), collect).await;
        let bookmarks = bookmarks.lock();
        assert!(bookmarks.iter().all(|revision| *revision > version), "{bookmarks:?}");
        assert_eq!(bookmarks.len(), n_expected);
    }
}
