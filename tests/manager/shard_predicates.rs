//! Keys that a replica reconciles when it gains slots: the same as a leader at its start.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use futures::FutureExt;
use kctl::{
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
    },
    manager::Manager,
    prelude::*,
};
use kctl_tests::Faults;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    lease_candidates::{Contest, advance_seconds, config},
    replicas::Replica,
    shards::{N_SLOTS, shards},
};

/// Drops changes of objects of another class.
fn is_ours(change: &Change<ConfigMap>) -> bool {
    change.latest().labels().get("class").is_none_or(|class| class != "other")
}

/// Returns the object that a Secret names in its label.
fn named(secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    secret.labels().get("for").map(|name| Key::namespaced("default", name)).into_iter().collect()
}

#[controller(owns = Secret(map = named), primary(when = is_ours))]
async fn classes(_config: Arc<ConfigMap>, _cx: Context<classes>) -> Result<Action> {
    Ok(Action::await_change())
}

async fn create_config(client: &Client, name: &str, class: &str, finalizers: &[&str]) -> ConfigMap {
    let metadata = json!({ "name": name, "labels": { "class": class }, "finalizers": finalizers });
    let configs = Api::<ConfigMap>::default_namespaced(client.clone());
    configs.create(&PostParams::default(), &kctl::from_json(json!({ "metadata": metadata })).unwrap()).await.unwrap()
}

async fn create_secret(client: &Client, metadata: kctl::Json) {
    let secret = kctl::from_json(json!({ "metadata": metadata })).unwrap();
    Api::<Secret>::default_namespaced(client.clone()).create(&PostParams::default(), &secret).await.unwrap();
}

/// Creates objects of both classes. Some of the other class have a Secret, or are being deleted.
async fn create_objects(client: &Client) {
    for number in 0..8 {
        for class in ["ours", "other"] {
            create_config(client, &format!("{class}-{number}"), class, &[]).await;
            let leaving = format!("{class}-leaving-{number}");
            create_config(client, &leaving, class, &["example.com/held"]).await;
            let configs = Api::<ConfigMap>::default_namespaced(client.clone());
            configs.delete(&leaving, &DeleteParams::default()).await.unwrap();
        }
        let name = format!("owner-{number}");
        let uid = create_config(client, &name, "other", &[]).await.metadata.uid;
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true });
        create_secret(client, json!({ "name": name, "ownerReferences": [owner] })).await;
        let name = format!("mapped-{number}");
        create_config(client, &name, "other", &[]).await;
        create_secret(client, json!({ "name": name, "labels": { "for": name } })).await;
    }
}

/// Runs replicas one after the other, and returns the names of the objects that each has reconciled.
async fn run_replicas(
    replicas: &[&'static str],
    set_up: impl Fn(Manager, Client, &'static str) -> Manager,
) -> Vec<BTreeSet<String>> {
    let contest = Contest::new();
    create_objects(&contest.client).await;
    let (mut running, mut all) = (Vec::new(), Vec::new());
    for &replica in replicas {
        let names = Arc::<Mutex<BTreeSet<String>>>::default();
        let noted = names.clone();
        let faults = Faults::default();
        let client = faults.client(&contest.server);
        let manager = App::new("podset").controller::<classes>().manager(client.clone()).await.unwrap();
        let manager = set_up(manager, client, replica).on_end(Arc::new(move |report| {
            noted.lock().insert(report.key.name.to_string());
        }));
        running.push(Replica::start(manager, faults));
        all.push(names);
        advance_seconds(5).await;
    }
    all.iter().map(|names| names.lock().clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn gained_slots_queue_the_keys_of_a_start() {
    let elected = run_replicas(&["a"], |manager, _client, replica| manager.elect(config(replica)).unwrap()).await;
    let names = |prefix: &str| (0..8).map(|number| format!("{prefix}-{number}")).collect::<Vec<_>>();
    let expected: BTreeSet<_> = ["ours", "ours-leaving", "owner", "mapped"].into_iter().flat_map(names).collect();
    assert_eq!(elected[0], expected);
    let shard =
        |manager: Manager, client, replica: &'static str| manager.shard(client, shards(replica, N_SLOTS)).unwrap();
    let sharded = run_replicas(&["a", "b"], shard).await;
    assert_eq!(sharded[0], expected, "the first replica gains all slots");
    assert!(!sharded[1].is_empty() && sharded[1].is_subset(&expected), "{:?}", sharded[1]);
}

const N_SECRETS: usize = 600;
/// Simulated time in which the mapper sees one object.
const MAPPING_TAKES: Duration = Duration::from_millis(10);

static IS_SLOW: AtomicBool = AtomicBool::new(false);
static N_MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Moves the simulated clock while it runs, if it is slow.
fn slow_mapper(_secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    if IS_SLOW.load(Ordering::Relaxed) {
        // The first poll moves the clock.
        let _yields = tokio::time::advance(MAPPING_TAKES).now_or_never();
        N_MAPPED.fetch_add(1, Ordering::Relaxed);
    }
    Vec::new()
}

#[controller(watches = Secret(map = slow_mapper), primary(when = is_ours))]
async fn sifted(_config: Arc<ConfigMap>, _cx: Context<sifted>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn later_slots_do_not_wait_for_earlier_mappers() {
    let contest = Contest::new();
    let names = |class: &str| (0..24).map(|number| format!("{class}-{number}")).collect::<BTreeSet<_>>();
    for class in ["ours", "other"] {
        for name in names(class) {
            create_config(&contest.client, &name, class, &[]).await;
        }
    }
    for number in 0..N_SECRETS {
        create_secret(&contest.client, json!({ "name": format!("secret-{number}") })).await;
    }
    let (mut replicas, reconciled) = (Vec::new(), Arc::<Mutex<BTreeSet<String>>>::default());
    for replica in ["a", "b", "c"] {
        let (faults, noted) = (Faults::default(), reconciled.clone());
        let client = faults.client(&contest.server);
        let manager = App::new("podset").controller::<sifted>().manager(client.clone()).await.unwrap();
        let manager = manager.shard(client, shards(replica, N_SLOTS)).unwrap().on_end(Arc::new(move |report| {
            if replica == "a" {
                noted.lock().insert(report.key.name.to_string());
            }
        }));
        replicas.push(Replica::start(manager, faults));
        sleep(Duration::from_millis(100)).await;
    }
    advance_seconds(5).await;
    let Ok([a, b, c]) = <[Replica; 3]>::try_from(replicas) else { panic!("three have started") };
    IS_SLOW.store(true, Ordering::Relaxed);
    b.stop().await.unwrap();
    while N_MAPPED.load(Ordering::Relaxed) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    c.stop().await.unwrap();
    while *reconciled.lock() != names("ours") {
        let n_mapped = N_MAPPED.load(Ordering::Relaxed);
        assert!(n_mapped < N_SECRETS, "{} of 24 keys after {n_mapped} objects", reconciled.lock().len());
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(a.n_owned(), 8);
}
