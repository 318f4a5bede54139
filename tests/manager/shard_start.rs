//! A replica that starts: the others keep their slots until it can work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt;
use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
};
use kctl_tests::Faults;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    lease_candidates::{Contest, advance_seconds},
    replicas::{Replica, create_configs},
    shards::{N_SLOTS, shards},
};

const N_SECRETS: usize = 600;
/// Simulated time that a slow mapper takes for one object.
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

#[controller(watches = Secret(map = slow_mapper))]
async fn mapped(_config: Arc<ConfigMap>, _cx: Context<mapped>) -> Result<Action> {
    Ok(Action::await_change())
}

async fn start(contest: &Contest, replica: &str) -> Replica {
    let faults = Faults::default();
    let client = faults.client(&contest.server);
    let manager = App::new("podset").controller::<mapped>().manager(client.clone()).await.unwrap();
    Replica::start(manager.shard(client, shards(replica, N_SLOTS)).unwrap(), faults)
}

#[tokio::test(start_paused = true)]
async fn replica_takes_no_slot_before_its_mappers_end() {
    let contest = Contest::new();
    create_configs(&contest.client, 8).await;
    let secrets = Api::<Secret>::default_namespaced(contest.client.clone());
    for number in 0..N_SECRETS {
        let secret = kctl::from_json(json!({ "metadata": { "name": format!("secret-{number}") } })).unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let a = start(&contest, "a").await;
    advance_seconds(3).await;
    assert_eq!(a.n_owned(), 8);
    IS_SLOW.store(true, Ordering::Relaxed);
    let b = start(&contest, "b").await;
    let mut n_looks = 0;
    while N_MAPPED.load(Ordering::Relaxed) < N_SECRETS {
        assert_eq!((a.n_owned(), b.n_owned()), (8, 0), "after {} objects", N_MAPPED.load(Ordering::Relaxed));
        n_looks += 1;
        sleep(Duration::from_millis(50)).await;
    }
    assert!(n_looks > 20, "the mapper takes long enough for a hand-over: {n_looks}");
    advance_seconds(4).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
}
