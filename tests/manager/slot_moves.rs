//! The work of a key whose slot moves to another replica: none of it is lost, and none is done twice.

use kctl::{
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    manager::Manager,
    prelude::*,
};
use kctl_runtime::worker::Outcome;
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    contest::{Contest, seconds},
    replicas::{Replica, create_configs},
    shards::{N_SLOTS, shards},
};

/// Starts a replica of an app that shards by object. `set_up` adds observers.
async fn start(contest: &Contest, identity: &str, app: App, set_up: impl FnOnce(Manager) -> Manager) -> Replica {
    let faults = Faults::default();
    let client = faults.client(&contest.server);
    let manager = app.manager(client.clone()).await.unwrap().shard(client, shards(identity, N_SLOTS)).unwrap();
    Replica::start(set_up(manager), faults)
}

/// Waits until a replica owns all slots.
async fn owns_all(replica: &Replica) {
    while replica.n_owned() < N_SLOTS as usize {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Reads the primary that its primary names.
#[controller(retries = 0)]
async fn reader(config: Arc<ConfigMap>, cx: Context<reader>) -> Result<Action> {
    if let Some(name) = config.data.as_ref().and_then(|data| data.get("reads")) {
        let found = cx.store::<ConfigMap>().get(&Key::namespaced("default", name));
        assert!(found.is_some(), "the list is complete");
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn read_of_a_gained_slot_repeats_until_listed() {
    let contest = Contest::new();
    create_configs(&contest.client, 20).await;
    let outcomes = Arc::<Mutex<Vec<(String, Outcome)>>>::default();
    let noted = outcomes.clone();
    let note = |manager: Manager| {
        manager.on_end(Arc::new(move |report| {
            noted.lock().push((report.key.name.to_string(), report.outcome.clone()));
        }))
    };
    let app = || App::new("podset").controller::<reader>();
    let a = start(&contest, "a", app(), note).await;
    let b = start(&contest, "b", app(), |manager| manager).await;
    seconds(5).await;
    let [own, other] = [&a, &b].map(|replica| replica.cached("configmaps").pop_first().unwrap());
    let is_list = |request: &RequestSummary| request.reads("configmaps") && !request.is_watch;
    a.faults.add(Fault::DelayAnswer(Duration::from_secs(5)), is_list);
    b.stop().await.unwrap();
    owns_all(&a).await;
    outcomes.lock().clear();
    let reads = Patch::Merge(json!({ "data": { "reads": &other } }));
    let configs = Api::<ConfigMap>::default_namespaced(contest.client.clone());
    configs.patch(&own, &PatchParams::default(), &reads).await.unwrap();
    seconds(20).await;
    let mut outcomes: Vec<_> = outcomes.lock().iter().filter(|(name, _)| *name == own).cloned().collect();
    let (_, last) = outcomes.pop().unwrap();
    assert_eq!(last, Outcome::Done(Action::await_change()));
    let text = format!("this replica has just gained the slot of default/{other}, and its cache is not complete yet");
    let too_early = Outcome::Failed { conflict: true, terminal: false, retry_after: None, text };
    assert!(!outcomes.is_empty() && outcomes.iter().all(|(_, outcome)| *outcome == too_early), "{outcomes:?}");
}
