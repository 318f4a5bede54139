//! The debug page over real connections: its content, its access control, and secrets that it must not show.

use std::time::Duration;

use kctl::{
    Error,
    kube::{Api, api::PostParams},
    manager::{Manager, lease::ElectionConfig},
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::{
    manager::shards::{LABEL, ShardConfig},
    shard::ShardBy,
    worker::CONFLICTS_BEFORE_WARNING,
};
use kctl_tests::Faults;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::lease_candidates::{Contest, config, conflict};

/// Fails, conflicts or hangs, depending on the object's name.
#[controller(reads = Secret, concurrency = 2)]
async fn does(config: Arc<ConfigMap>, _cx: Context<does>) -> Result<Action> {
    match config.metadata.name.as_deref().unwrap_or_default() {
        name if name.starts_with("fails") => Err("<b>the disk</b> is full".into()),
        name if name.starts_with("gives-up") => Err(Error::from("it is misspelt")).terminal(),
        "conflicts" => Err(conflict()),
        "hangs" => std::future::pending().await,
        _ => Ok(Action::await_change()),
    }
}

/// Most reads of a page that a test waits for, 10 ms apart.
const READS_MAX: usize = 9_000;

struct Site {
    address: String,
    contest: Contest,
}

async fn site(hosts: &[&str], election: Option<ElectionConfig>) -> Site {
    let (manager, contest) = manager(election).await;
    serve(manager, contest, hosts).await
}

async fn manager(election: Option<ElectionConfig>) -> (Manager, Contest) {
    let contest = Contest::new();
    let app = App::new("does").controller::<does>();
    let mut manager = app.manager(Faults::default().client(&contest.server)).await.unwrap();
    if let Some(election) = election {
        manager = manager.elect(election).unwrap();
    }
    (manager, contest)
}

async fn serve(manager: Manager, contest: Contest, hosts: &[&str]) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let hosts = hosts.iter().map(ToString::to_string).collect();
    tokio::spawn(manager.serve_debug(listener, hosts).run(std::future::pending()));
    Site { address, contest }
}

impl Site {
    async fn create(&self, name: &str) {
        let client = Faults::default().client(&self.contest.server);
        let object = json!({ "metadata": { "name": name }, "data": { "key": "the-body" } });
        let object = serde_json::from_value(object).unwrap();
        Api::<ConfigMap>::namespaced(client, "default").create(&PostParams::default(), &object).await.unwrap();
    }

    /// Sends a request and returns the head and the body of the response.
    async fn send_request(&self, method: &str, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    async fn get(&self, path: &str) -> (String, String) {
        self.send_request("GET", path, &self.address).await
    }

    /// Returns the head and the body of a page once the body fulfills a condition.
    async fn page_when(&self, path: &str, wanted: impl Fn(&str) -> bool) -> (String, String) {
        for _ in 0..READS_MAX {
            let (head, body) = self.get(path).await;
            if wanted(&body) {
                return (head, body);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} is not as wanted: {}", self.get(path).await.1);
    }

    /// Returns the state once it fulfills a condition.
    async fn state_when(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..READS_MAX {
            let (head, body) = self.get("/debug/state.json").await;
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let state = serde_json::from_str(&body).unwrap();
            if wanted(&state) {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the state is not as wanted: {}", self.get("/debug/state.json").await.1);
    }
}

fn reconciles(state: &Value) -> &Vec<Value> {
    state["reconciles"].as_array().unwrap()
}

#[tokio::test]
async fn sharded_program_shows_owners_and_moves_of_slots() {
    let (manager, contest) = manager(None).await;
    // The slot 1 had four owners.
    let metadata = json!({ "name": "podset-slot-1", "labels": { LABEL: "podset" } });
    let spec = json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 4 });
    let released = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
    contest.leases().create(&PostParams::default(), &released).await.unwrap();
    let slots = ShardConfig::new(config("a"), 3, ShardBy::Namespace).unwrap();
    let manager = manager.shard(contest.client.clone(), slots).unwrap();
    let site = serve(manager, contest, &[]).await;
    let is_owned = |slot: &Value| slot["state"] == "owned" && slot["owner"] == "a";
    let owned = |state: &Value| state["shards"]["slots"].as_array().is_some_and(|slots| slots.iter().all(is_owned));
    let shards = site.state_when(owned).await["shards"].take();
    assert_eq!((&shards["by"], &shards["seat"]), (&json!("namespace"), &json!(0)));
    assert_eq!(shards["note"], "owns 3 of 3 slots, in seat 0");
    let moves: Vec<_> = shards["slots"].as_array().unwrap().iter().map(|slot| slot["moves"].as_u64()).collect();
    assert_eq!(moves, [Some(0), Some(5), Some(0)], "two Leases are new");
}

#[tokio::test]
async fn given_up_keys_of_lost_slots_are_forgotten() {
    let (manager, contest) = manager(None).await;
    let config_of = |replica| ShardConfig::new(config(replica), 8, ShardBy::Object).unwrap();
    let slots = config_of("a").slots();
    let other = App::new("does").controller::<does>().manager(Faults::default().client(&contest.server)).await.unwrap();
    let other = other.shard(contest.client.clone(), config_of("b")).unwrap();
    let site = serve(manager.shard(contest.client.clone(), config_of("a")).unwrap(), contest, &[]).await;
    for number in 0..20 {
        site.create(&format!("gives-up-{number}")).await;
    }
    let failing = |state: &Value| state["controllers"][0]["failing"].as_array().cloned().unwrap_or_default();
    site.state_when(|state| failing(state).len() == 20).await;
    tokio::spawn(other.run(std::future::pending()));
    let is_own = |state: &Value, failing: &Value| {
        let slot = slots.slot_for(&failing["key"].as_str().unwrap().parse().unwrap());
        state["shards"]["slots"][slot as usize]["state"] == "owned"
    };
    let only_own =
        |state: &Value| failing(state).len() < 20 && failing(state).iter().all(|failing| is_own(state, failing));
    site.state_when(only_own).await;
}

#[tokio::test]
async fn slot_of_a_key_names_owner_and_reason() {
    let (manager, contest) = manager(None).await;
    let config = ShardConfig::new(config("a"), 3, ShardBy::Namespace).unwrap();
    let slots = config.slots();
    let site = serve(manager.shard(contest.client.clone(), config).unwrap(), contest, &[]).await;
    let is_owned = |slot: &Value| slot["state"] == "owned" && slot["owner"] == "a";
    let owned = |state: &Value| state["shards"]["slots"].as_array().is_some_and(|slots| slots.iter().all(is_owned));
    site.state_when(owned).await;
    for key in ["default/blog", "default", "shop/blog", "node-1"] {
        let path = format!("/debug/slot.json?key={}", key.replace('/', "%2F"));
        // Until the objects of its slot are listed.
        let is_listed = |body: &str| !body.contains(" waits for the list of its objects.");
        let (head, body) = site.page_when(&path, is_listed).await;
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-type: application/json"), "{key}: {head}");
        let slot = slots.slot_for(&key.parse().unwrap());
        let why = "This replica owns it, so its controllers reconcile the key once their caches are complete.";
        let reason = format!("{key} is in slot {slot}. {why}");
        let expected = json!({ "key": key, "slot": slot, "owner": "a", "state": "owned", "reason": reason });
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    }
    let wrong = [
        ("", "the key is empty"),
        ("?key=", "the key is empty"),
        ("?key=a%2Fb%2Fc", "more than one `/`"),
        ("?key=Shop%2Fweb", "`Shop` is not a valid namespace name"),
    ];
    for (query, part) in wrong {
        let (head, body) = site.get(&format!("/debug/slot.json{query}")).await;
        assert!(head.starts_with("HTTP/1.1 400") && body.contains(part), "{query}: {head} {body}");
    }
}

#[tokio::test]
async fn slot_of_a_program_without_shards_is_404() {
    let site = site(&[], None).await;
    let (head, body) = site.get("/debug/slot.json?key=default%2Fblog").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(body.starts_with("this program has no slots: run it with --shards"), "{body}");
}

#[tokio::test]
async fn every_response_has_strict_content_security_policy() {
    let site = site(&[], None).await;
    let pages = [
        ("/debug/", 200, "text/html; charset=utf-8"),
        ("/debug/app.js", 200, "text/javascript; charset=utf-8"),
        ("/debug/style.css", 200, "text/css; charset=utf-8"),
        ("/debug/graph.svg", 200, "image/svg+xml"),
        ("/debug/state.json", 200, "application/json"),
        ("/debug/state.json?after=1", 200, "application/json"),
        ("/debug/state.json?after=-1", 400, "text/plain; charset=utf-8"),
        ("/debug/slot.json?key=default%2Fblog", 404, "text/plain; charset=utf-8"),
        ("/", 302, "text/plain; charset=utf-8"),
        ("/debug", 302, "text/plain; charset=utf-8"),
        ("/metrics", 404, "text/plain; charset=utf-8"),
        ("/debug/../debug/none", 404, "text/plain; charset=utf-8"),
    ];
    for (path, status, kind) in pages {
        let (head, _) = site.get(path).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {head}");
        let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}: {head}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for line in [&format!("content-type: {kind}"), "x-content-type-options: nosniff", "cache-control: no-store"] {
            assert!(head.lines().any(|has| has == line), "{path} lacks {line}: {head}");
        }
    }
    let (_, html) = site.get("/debug/").await;
    assert!(!html.contains("style=") && !html.contains("onclick"), "the policy would forbid it");
}

#[tokio::test]
async fn only_reads_for_a_known_host_are_answered() {
    let site = site(&["debug.example"], None).await;
    let cases = [
        ("GET", "localhost:1", 200),
        ("GET", "debug.example", 200),
        ("GET", "evil.example", 403),
        ("GET", "127.0.0.1.evil.example:8082", 403),
        ("POST", "localhost", 405),
        ("PUT", "localhost", 405),
        ("DELETE", "localhost", 405),
        ("OPTIONS", "localhost", 405),
    ];
    for path in ["/debug/", "/debug/state.json"] {
        for (method, host, status) in cases {
            let (head, body) = site.send_request(method, path, host).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path} as {host}: {head}");
            assert!(status == 200 || !body.contains("controllers"), "{body}");
        }
    }
}

#[tokio::test]
async fn state_names_failing_given_up_and_running_keys() {
    let site = site(&[], None).await;
    for name in ["works", "fails", "gives-up", "hangs"] {
        site.create(name).await;
    }
    let done = |state: &Value| {
        let of = &state["controllers"][0];
        of["n_failing"] == 2 && of["running_keys"].as_array().unwrap().len() == 1 && reconciles(state).len() >= 3
    };
    let state = site.state_when(done).await;
    assert_eq!((state["app"].as_str(), &state["election"]), (Some("does"), &Value::Null));
    let controller = &state["controllers"][0];
    assert_eq!(controller["running_keys"][0]["key"], "default/hangs");
    let failing = controller["failing"].as_array().unwrap();
    let of = |name: &str| failing.iter().find(|key| key["key"] == format!("default/{name}")).unwrap();
    assert_eq!(
        (of("fails")["text"].as_str(), &of("fails")["given_up"]),
        (Some("<b>the disk</b> is full"), &json!(false))
    );
    assert_eq!((of("gives-up")["text"].as_str(), &of("gives-up")["given_up"]), (Some("it is misspelt"), &json!(true)));
    let works = reconciles(&state).iter().find(|run| run["key"] == "default/works").unwrap();
    assert_eq!(
        (works["outcome"].as_str(), works["next"].as_str()),
        (Some("done"), Some("at the next event or resync"))
    );
    let caches = state["caches"].as_array().unwrap();
    let configs = caches.iter().find(|cache| cache["kind"] == "ConfigMap").unwrap();
    assert_eq!((&configs["objects"], &configs["synced"], &configs["backlog"]), (&json!(4), &json!(true), &json!(0)));
    assert_eq!(configs["lag_seconds"], 0.0);
    assert!(configs["bytes"].as_u64().unwrap() > 100, "packed, each is some forty bytes: {configs}");
    let wires: Vec<_> = state["wiring"].as_array().unwrap().iter().map(|wire| wire["kind"].as_str().unwrap()).collect();
    assert_eq!(wires, ["ConfigMap", "Secret"]);
    assert!(!state.to_string().contains("the-body"), "nothing of what is in objects");
}

#[tokio::test]
async fn state_shows_run_time_caches_while_watched() {
    let (manager, contest) = manager(None).await;
    let watches = manager.watches();
    let site = serve(manager, contest, &[]).await;
    let kinds = |state: &Value| {
        let caches = state["caches"].as_array().unwrap().iter();
        caches.map(|cache| (cache["kind"].clone(), cache["synced"].clone())).collect::<Vec<_>>()
    };
    let of = |names: &[&str]| names.iter().map(|name| (json!(name), json!(true))).collect::<Vec<_>>();
    site.state_when(|state| kinds(state) == of(&["ConfigMap", "Secret"])).await;
    let pods = watches.watch::<Pod>(WatchConfig::of::<Pod>()).await.unwrap();
    site.state_when(|state| kinds(state) == of(&["ConfigMap", "Pod", "Secret"])).await;
    drop(pods);
    site.state_when(|state| kinds(state) == of(&["ConfigMap", "Secret"])).await;
}

#[tokio::test]
async fn state_explains_unusually_many_conflicts() {
    let site = site(&[], None).await;
    site.create("conflicts").await;
    let state = site.state_when(|state| reconciles(state).len() > CONFLICTS_BEFORE_WARNING as usize).await;
    for (n, run) in (1..).zip(reconciles(&state)) {
        assert_eq!((run["outcome"].as_str(), run["text"].as_str()), (Some("conflict"), Some(&*conflict().to_string())));
        let next = run["next"].as_str().unwrap();
        if n <= CONFLICTS_BEFORE_WARNING {
            assert_eq!(next, "again with the newer state", "{n}");
        } else {
            assert_eq!(next, format!("again, with backoff: {n} conflicts in a row"));
        }
    }
    let failing = site.state_when(|state| state["controllers"][0]["n_failing"] == 1).await;
    let failing = &failing["controllers"][0]["failing"][0];
    assert_eq!(
        (failing["key"].as_str(), failing["text"].as_str()),
        (Some("default/conflicts"), Some(&*conflict().to_string()))
    );
}

#[tokio::test]
async fn recovered_key_is_not_listed_as_failing() {
    let site = site(&[], None).await;
    site.create("fails").await;
    site.state_when(|state| state["controllers"][0]["n_failing"] == 1).await;
    let client = Faults::default().client(&site.contest.server);
    Api::<ConfigMap>::namespaced(client, "default")
        .delete("fails", &kctl::kube::api::DeleteParams::default())
        .await
        .unwrap();
    let state = site.state_when(|state| state["controllers"][0]["n_failing"] == 0).await;
    assert_eq!(state["controllers"][0]["failing"], json!([]));
    assert_eq!(reconciles(&state).last().unwrap()["outcome"], "gone");
}

#[tokio::test]
async fn state_lists_are_bounded_and_counts_complete() {
    let site = site(&[], None).await;
    for n in 0..60 {
        site.create(&format!("fails-{n}")).await;
    }
    let state = site.state_when(|state| state["controllers"][0]["n_failing"] == 60).await;
    assert_eq!(state["controllers"][0]["failing"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn only_reconciles_new_to_the_page_are_sent() {
    let site = site(&[], None).await;
    site.create("works").await;
    let first = site.state_when(|state| reconciles(state).len() == 1).await;
    assert_eq!(reconciles(&first)[0]["number"], 1);
    site.create("works-too").await;
    site.state_when(|state| reconciles(state).len() == 2).await;
    let newer: Value = serde_json::from_str(&site.get("/debug/state.json?after=1").await.1).unwrap();
    let numbers: Vec<_> = reconciles(&newer).iter().map(|run| run["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [2]);
}

#[tokio::test]
async fn state_names_the_leader() {
    let site = site(&[], Some(config("me"))).await;
    let state = site.state_when(|state| state["election"]["state"] == "leads").await;
    assert_eq!((state["election"]["holder"].as_str(), state["checks"][0]["ok"].as_bool()), (Some("me"), Some(true)));
}
