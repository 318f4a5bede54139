//! Tasks that reconciles have spawned: they write nothing after their slot has moved, even if it has come back.

use std::collections::{BTreeMap, BTreeSet};

use kctl::prelude::*;
use kctl_tests::Faults;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    lease_candidates::{Contest, advance_seconds},
    replicas::{Replica, create_configs},
    shards::{N_SLOTS, shards},
};

const N_KEYS: usize = 40;

/// The tasks that the first reconcile of each key has spawned.
#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) spawned: BTreeSet<String>,
    results: BTreeMap<String, std::result::Result<(), ApiError>>,
}

impl Tasks {
    /// Checks that the writes for these keys were denied, and those for the others sent.
    pub(crate) fn check_denied(&self, moved: &BTreeSet<String>) {
        assert_eq!(self.results.len(), self.spawned.len(), "all tasks have ended");
        let denied = self.results.iter().filter(|(_, result)| result.is_err());
        let (denied, errors): (BTreeSet<_>, Vec<_>) = denied.map(|(name, result)| (name.clone(), result)).unzip();
        assert!(errors.iter().all(|result| matches!(result, Err(ApiError::NotLeading { .. }))), "{errors:?}");
        assert_eq!(denied, *moved);
    }
}

/// Creates a Secret for each `ConfigMap`, in a task that waits until it may write.
#[controller(of = ConfigMap, owns = Secret(create))]
pub(crate) struct Spawning {
    pub(crate) may_write: watch::Receiver<bool>,
    pub(crate) tasks: Arc<Mutex<Tasks>>,
}

impl Reconcile for Spawning {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let name = config.name_any();
        if self.tasks.lock().spawned.insert(name.clone()) {
            let (mut may_write, tasks) = (self.may_write.clone(), self.tasks.clone());
            tokio::spawn(async move {
                drop(may_write.wait_for(|may_write| *may_write).await);
                let secret = kctl::from_json(json!({ "metadata": { "name": &name } })).unwrap();
                let created = cx.owned::<Secret>().create(secret).await;
                tasks.lock().results.insert(name, created.map(drop));
            });
        }
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn spawned_task_writes_nothing_once_its_slot_moved() {
    let contest = Contest::new();
    create_configs(&contest.client, N_KEYS).await;
    let (release, may_write) = watch::channel(false);
    let tasks = Arc::<Mutex<Tasks>>::default();
    let start = async |replica: &'static str| {
        let (may_write, tasks, faults) = (may_write.clone(), tasks.clone(), Faults::default());
        let app = App::new("podset").controller_with(move |_env| {
            std::future::ready(Ok(Spawning { may_write: may_write.clone(), tasks: tasks.clone() }))
        });
        let client = faults.client(&contest.server);
        let manager = app.manager(client.clone()).await.unwrap().shard(client, shards(replica, N_SLOTS)).unwrap();
        Replica::start(manager, faults)
    };
    let a = start("a").await;
    advance_seconds(3).await;
    assert_eq!(tasks.lock().spawned.len(), N_KEYS);
    let b = start("b").await;
    advance_seconds(3).await;
    let moved = b.cached_names("configmaps");
    assert!(!moved.is_empty() && moved.len() < N_KEYS, "{moved:?}");
    b.stop().await.unwrap();
    advance_seconds(3).await;
    assert_eq!(a.n_owned(), 8);
    release.send_replace(true);
    advance_seconds(1).await;
    tasks.lock().check_denied(&moved);
}
