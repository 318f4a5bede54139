//! Watches that a sharded program opens before its controllers are added. They report the objects of all slots.

use kctl::{
    app::Env,
    prelude::*,
    watches::{Projection, Watch, WatchConfig},
};
use kctl_tests::Faults;
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    lease_candidates::{Contest, advance_seconds},
    replicas::{Replica, create_configs},
    shards::{N_SLOTS, shards},
};

const N_KEYS: usize = 40;

/// Keeps a Secret for each `ConfigMap`.
#[controller(of = ConfigMap, owns = Secret(apply))]
struct Copies;

impl Reconcile for Copies {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        cx.owned::<Secret>().apply(json!({ "metadata": { "name": config.name_any() } })).await?;
        Ok(Action::await_change())
    }
}

/// Watches of the primary and of the owned kind.
struct Opened {
    configs: Watch<ConfigMap>,
    secrets: Watch<Secret>,
}

impl Opened {
    fn n_objects(&self) -> (usize, usize) {
        (self.configs.objects().len(), self.secrets.objects().len())
    }
}

/// Starts a replica that opens its watches while it creates the controller.
async fn start(contest: &Contest, replica: &'static str) -> (Replica, Opened) {
    let opened = Arc::<Mutex<Option<Opened>>>::default();
    let noted = opened.clone();
    let app = App::new("podset").controller_with(move |env: Env| {
        let noted = noted.clone();
        async move {
            let configs = env.watches.watch(WatchConfig::of::<ConfigMap>()).await.unwrap();
            let secrets = env.watches.watch(WatchConfig::of::<Secret>()).await.unwrap();
            *noted.lock() = Some(Opened { configs, secrets });
            Ok(Copies)
        }
    });
    let faults = Faults::default();
    let client = faults.client(&contest.server);
    let manager = app.manager(client.clone()).await.unwrap().shard(client, shards(replica, N_SLOTS)).unwrap();
    let opened = opened.lock().take().unwrap();
    (Replica::start(manager, faults), opened)
}

/// Takes the waiting changes, and returns how many of them are deletions.
async fn n_deleted<T: Projection>(watch: &mut Watch<T>) -> usize {
    let mut n = 0;
    while watch.waiting() > 0 {
        n += usize::from(matches!(watch.next().await.unwrap(), Change::Deleted { .. }));
    }
    n
}

#[tokio::test(start_paused = true)]
async fn watch_opened_before_its_controller_has_all_objects() {
    let contest = Contest::new();
    create_configs(&contest.client, N_KEYS).await;
    let ((a, mut by_a), (b, mut by_b)) = (start(&contest, "a").await, start(&contest, "b").await);
    advance_seconds(5).await;
    assert!(a.n_owned() > 0 && b.n_owned() > 0, "{} and {}", a.n_owned(), b.n_owned());
    for opened in [&by_a, &by_b] {
        assert_eq!(opened.n_objects(), (N_KEYS, N_KEYS));
    }
    let (c, _by_c) = start(&contest, "c").await;
    advance_seconds(5).await;
    assert!(c.n_owned() > 0, "slots have moved");
    for opened in [&mut by_a, &mut by_b] {
        assert_eq!(opened.n_objects(), (N_KEYS, N_KEYS));
        let n_deleted = (n_deleted(&mut opened.configs).await, n_deleted(&mut opened.secrets).await);
        assert_eq!(n_deleted, (0, 0), "the objects of slots that moved still exist");
    }
}
