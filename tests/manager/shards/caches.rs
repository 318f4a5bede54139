//! A replica caches only its share of primaries and children.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    kube::{Api, api::PostParams},
    manager::Manager,
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::{
    manager::{metrics::Format, shards::ShardConfig},
    shard::ShardBy,
    worker::Outcome,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::{N_KEYS, N_SLOTS, ShardWorld, shards};
use crate::{
    lease_candidates::{Contest, advance_seconds, config},
    replicas::Replica,
};

/// The list of a large kind takes long. Its response arrives after newer watch events.
#[tokio::test(start_paused = true)]
async fn list_overtaken_by_the_watch_fills_gained_slots() {
    let world = ShardWorld::new(Duration::from_millis(5)).await;
    let a = world.start("a").await;
    world.wait_until_reconciled_at(0).await;
    let faults = Faults::default();
    let is_list =
        |request: &RequestSummary| request.method == "GET" && !request.is_watch && !request.path.ends_with("/leases");
    faults.add(Fault::DelayResponse(Duration::from_millis(400)), is_list);
    let set_up = |manager: Manager, client| manager.shard(client, shards("b", N_SLOTS)).unwrap();
    let b = world.start_on("b", faults, set_up).await;
    for state in 1..=40 {
        world.change(state).await;
        sleep(Duration::from_millis(100)).await;
    }
    assert!(b.n_owned() > 0 && a.n_owned() + b.n_owned() == 8, "{} and {}", a.n_owned(), b.n_owned());
    world.wait_until_reconciled_at(40).await;
    world.check_nothing_ran_twice();
    assert_eq!(cached_shares(&[&a, &b]).iter().map(BTreeSet::len).sum::<usize>(), N_KEYS);
}

/// Returns the cached `ConfigMap`s of each replica. Checks that exactly their Secrets are cached with them.
fn cached_shares(replicas: &[&Replica]) -> Vec<BTreeSet<String>> {
    let shares: Vec<_> = replicas.iter().map(|replica| replica.cached_names("configmaps")).collect();
    for (replica, share) in replicas.iter().zip(&shares) {
        assert_eq!(replica.cached_names("secrets"), *share);
    }
    let all: BTreeSet<_> = shares.iter().flatten().cloned().collect();
    let n_cached: usize = shares.iter().map(BTreeSet::len).sum();
    assert_eq!((all.len(), n_cached), (N_KEYS, N_KEYS), "each object is in one cache");
    shares
}

#[tokio::test(start_paused = true)]
async fn replica_caches_its_share_of_primaries_and_children() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    world.wait_until_reconciled_at(0).await;
    assert_eq!(cached_shares(&[&a])[0].len(), N_KEYS);
    let b = world.start("b").await;
    let c = world.start("c").await;
    advance_seconds(3).await;
    assert!(cached_shares(&[&a, &b, &c]).iter().all(|share| share.len() < N_KEYS * 2 / 3));
    assert_eq!([&a, &b, &c].map(Replica::n_owned).iter().max(), Some(&3), "8 slots for three");
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    cached_shares(&[&a, &b, &c]);
    b.stop().await.unwrap();
    advance_seconds(2).await;
    cached_shares(&[&a, &c]);
    c.crash().await;
    advance_seconds(20).await;
    assert_eq!(cached_shares(&[&a])[0].len(), N_KEYS);
    world.change(2).await;
    world.wait_until_reconciled_at(2).await;
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn metrics_keep_share_and_whole_cache_apart() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let mut watches = None;
    let a = world.start_by("a", |manager, client| {
        watches = Some(manager.watches());
        manager.shard(client, shards("a", N_SLOTS)).unwrap()
    });
    let a = a.await;
    let b = world.start("b").await;
    advance_seconds(5).await;
    let mut all = watches.unwrap().watch::<Secret>(WatchConfig::of::<Secret>()).await.unwrap();
    let _first = all.next().await;
    advance_seconds(1).await;
    let text = a.metrics.text(Format::Prometheus);
    for (name, n) in [("", a.cached_names("secrets").len()), (";watched", N_KEYS)] {
        let sample =
            format!("kctl_cache_objects{{name=\"{name}\",group=\"\",version=\"v1\",resource=\"secrets\"}} {n}\n");
        assert!(text.contains(&sample), "no {sample} in {text}");
    }
    assert!(b.n_owned() > 0);
}

/// Reads objects that belong to other primaries.
#[controller(owns = Secret(create))]
async fn curious(config: Arc<ConfigMap>, cx: Context<curious>) -> Result<Action> {
    let configs = cx.store::<ConfigMap>();
    let own = Key::from_object(&*config);
    assert!(configs.get(&own).is_some());
    match config.data.as_ref().map(|data| data["reads"].as_str()).unwrap_or_default() {
        "all" => drop(configs.iter()),
        "namespace" => drop(configs.in_namespace("default")),
        "number" => drop(configs.len()),
        "children" => drop(cx.store::<Secret>().get(&Key::namespaced("default", "any"))),
        _ => {}
    }
    Ok(Action::await_change())
}

/// Runs one sharded replica over `ConfigMap`s with different reads. Returns those whose reconcile panicked.
async fn panics_of(by: ShardBy, app: App) -> BTreeMap<String, String> {
    let contest = Contest::new();
    for reads in ["all", "namespace", "number", "children", "nothing"] {
        let config = json!({ "metadata": { "name": reads }, "data": { "reads": reads } });
        let configs = Api::<ConfigMap>::default_namespaced(contest.client.clone());
        configs.create(&PostParams::default(), &kctl::from_json(config).unwrap()).await.unwrap();
    }
    let panics = Arc::<Mutex<BTreeMap<String, String>>>::default();
    let noted = panics.clone();
    let client = contest.client.clone();
    let slots = ShardConfig::new(config("a"), 4, by).unwrap();
    let manager = app.manager(client.clone()).await.unwrap().shard(client, slots).unwrap();
    let manager = manager.on_end(Arc::new(move |report| {
        if let Outcome::Panicked(text) = &report.outcome {
            noted.lock().insert(report.key.name.to_string(), text.clone());
        }
    }));
    let running = tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(5).await;
    running.abort();
    panics.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn read_beyond_the_share_panics_unless_cached_whole() {
    let app = || App::new("podset").controller::<curious>();
    let panics = panics_of(ShardBy::Object, app()).await;
    assert_eq!(panics.keys().collect::<Vec<_>>(), ["all", "children", "namespace", "number"]);
    let text = "this replica caches only its share of ConfigMap, which a list of all objects is not limited to: call \
                `App::cache_whole::<ConfigMap>()`, or read `cx.owned` or `cx.live` instead of `cx.store`";
    assert_eq!(panics["all"], text);
    let by_namespace = "is not limited to: shard by `ShardBy::Namespace` with `App::sharded`, call `App::cache_whole";
    assert!(panics["namespace"].contains(by_namespace), "{}", panics["namespace"]);
    assert!(!panics["children"].contains("ShardBy"), "{}", panics["children"]);
    let by_namespace = panics_of(ShardBy::Namespace, app()).await;
    assert_eq!(by_namespace.keys().collect::<Vec<_>>(), ["all", "children", "number"]);
    let whole = panics_of(ShardBy::Object, app().cache_whole::<ConfigMap>().cache_whole::<Secret>()).await;
    assert_eq!(whole, BTreeMap::new());
}
