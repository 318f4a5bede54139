//! Several active replicas: each reconciles the keys of its slots, and none writes for those of another replica.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kctl::{
    apiserver::{ApiServer, User},
    k8s::api::{
        coordination::v1::Lease,
        core::v1::Namespace,
        rbac::v1::{Role, RoleBinding},
    },
    key::ObjectKey,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    manager::{Manager, ManagerError},
    manifest::{ManagerOptions, RbacOptions, manager_rbac},
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::{
    manager::{
        metrics::Format,
        shards::{ShardConfig, ShardView},
    },
    shard::ShardBy,
    worker::Outcome,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::oneshot, time::sleep};

use crate::{
    contest::{Contest, config, seconds},
    replicas::{Finished, Replica, change_config, change_configs, create_configs, reaches, state_of},
};

pub(crate) const N_SLOTS: u32 = 8;
const N_KEYS: usize = 40;

/// The work of all replicas.
#[derive(Default)]
struct Seen {
    /// Keys that are being reconciled.
    busy: HashSet<String>,
    /// Keys that two replicas reconciled at the same time.
    twice: Vec<String>,
    last: Finished,
    /// Errors of writes, with the replica.
    failed: Vec<(&'static str, String)>,
    /// Keys whose Secret was written, but missing in the cache of the next reconcile.
    lost: Vec<String>,
    /// Number of reconciles of each key.
    n_runs: BTreeMap<String, usize>,
}

/// A running reconcile, which may be dropped at any time.
struct Busy(Arc<Mutex<Seen>>, String);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().busy.remove(&self.1);
    }
}

#[controller(of = ConfigMap, owns = Secret(apply), concurrency = 4)]
struct Configs {
    replica: &'static str,
    takes: Duration,
    seen: Arc<Mutex<Seen>>,
}

impl Reconcile for Configs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let name = config.name_any();
        if !self.seen.lock().busy.insert(name.clone()) {
            self.seen.lock().twice.push(name.clone());
        }
        let busy = Busy(self.seen.clone(), name.clone());
        {
            let mut seen = self.seen.lock();
            *seen.n_runs.entry(name.clone()).or_default() += 1;
            if seen.last.contains(&name) && cx.owned::<Secret>().is_empty() {
                seen.lost.push(name.clone());
            }
        }
        sleep(self.takes).await;
        let state = state_of(&config);
        let data = json!({ "by": self.replica, "state": state.to_string() });
        let written = cx.owned::<Secret>().apply(json!({ "metadata": { "name": &name }, "stringData": data })).await;
        if let Err(error) = written {
            self.seen.lock().failed.push((self.replica, error.to_string()));
            return Err(error.into());
        }
        drop(busy);
        self.seen.lock().last.note(name, state, self.replica);
        Ok(Action::await_change())
    }
}

/// A cluster with replicas of one app.
pub(crate) struct World {
    pub(crate) contest: Contest,
    seen: Arc<Mutex<Seen>>,
    takes: Duration,
}

impl Replica {
    /// Returns the value of a metric.
    fn metric(&self, name: &str) -> usize {
        let text = self.metrics.text(Format::Prometheus);
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix("{} "));
        let value = values.next().unwrap_or_else(|| panic!("{name} is not in {text}"));
        assert_eq!(values.next(), None, "{name} is written twice");
        value.parse().unwrap()
    }

    fn leads(&self) -> bool {
        self.view.shards().unwrap().leader_permit().is_some()
    }

    pub(crate) fn n_owned(&self) -> usize {
        self.view.shards().unwrap().n_owned()
    }

    /// Returns the result of the check of `/readyz` about the slots.
    pub(crate) fn ready(&self) -> std::result::Result<String, String> {
        self.check("shards")
    }
}

pub(crate) fn shards(identity: &str, n: u32) -> ShardConfig {
    ShardConfig::new(config(identity), n, ShardBy::Object).unwrap()
}

impl World {
    pub(crate) async fn new(takes: Duration) -> Self {
        let world = Self { contest: Contest::new(), seen: Arc::default(), takes };
        create_configs(&world.contest.client, N_KEYS).await;
        world
    }

    fn configs(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.contest.client.clone())
    }

    pub(crate) async fn start(&self, replica: &'static str) -> Replica {
        self.start_by(replica, |manager, client| manager.shard(client, shards(replica, N_SLOTS)).unwrap()).await
    }

    pub(crate) async fn start_by(
        &self,
        replica: &'static str,
        set_up: impl FnOnce(Manager, Client) -> Manager,
    ) -> Replica {
        self.start_on(replica, Faults::default(), set_up).await
    }

    pub(crate) async fn start_on(
        &self,
        replica: &'static str,
        faults: Faults,
        set_up: impl FnOnce(Manager, Client) -> Manager,
    ) -> Replica {
        let (seen, takes) = (self.seen.clone(), self.takes);
        let app = App::new("podset")
            .controller_with(move |_env| std::future::ready(Ok(Configs { replica, takes, seen: seen.clone() })));
        let client = faults.client(&self.contest.server);
        let manager = set_up(app.manager(client.clone()).await.unwrap(), client);
        Replica::start(manager, faults)
    }

    /// Sets the state of all objects.
    pub(crate) async fn change(&self, state: u64) {
        change_configs(&self.contest.client, N_KEYS, state).await;
    }

    /// Returns the number of keys whose last reconcile was by this replica.
    pub(crate) fn n_by(&self, replica: &str) -> usize {
        self.seen.lock().last.n_by(replica)
    }

    /// Returns the number of keys whose last reconcile saw this state, and the replicas that did them.
    fn reached(&self, state: u64) -> (usize, BTreeSet<&'static str>) {
        self.seen.lock().last.reached(state)
    }

    /// Waits until every key has reached a state, and returns how long that took.
    pub(crate) async fn reaches(&self, state: u64) -> Duration {
        reaches(N_KEYS, Duration::from_secs(60), || self.reached(state)).await
    }

    pub(crate) fn check_nothing_ran_twice(&self) {
        assert_eq!(self.seen.lock().twice, [""; 0]);
        assert_eq!(self.seen.lock().lost, [""; 0], "a cache was older than its slot, or lacked a part of it");
    }

    pub(crate) async fn leases(&self) -> BTreeMap<String, String> {
        let all = self.contest.leases().list(&ListParams::default()).await.unwrap();
        let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        all.iter().map(|lease| (lease.name_any(), holder(lease).unwrap_or_default())).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_share_keys_and_slots_move_on_join() {
    let world = World::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    world.reaches(0).await;
    assert_eq!((a.n_owned(), a.ready()), (8, Ok("owns 8 of 8 slots, in seat 0".into())));
    let b = world.start("b").await;
    seconds(2).await;
    assert!(b.n_owned() > 0 && a.n_owned() + b.n_owned() == 8, "{} and {}", a.n_owned(), b.n_owned());
    world.change(1).await;
    world.reaches(1).await;
    assert_eq!(world.reached(1).1, ["a", "b"].into());
    let c = world.start("c").await;
    seconds(2).await;
    assert_eq!(a.n_owned() + b.n_owned() + c.n_owned(), 8);
    world.change(2).await;
    world.reaches(2).await;
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn metrics_sum_up_to_all_slots() {
    let world = World::new(Duration::from_millis(20)).await;
    let replicas = [world.start("a").await, world.start("b").await, world.start("c").await];
    seconds(5).await;
    let sum = |metric: &str| replicas.iter().map(|replica| replica.metric(metric)).sum::<usize>();
    assert_eq!((sum("kctl_slots"), sum("kctl_slots_owned")), (3 * 8, 8));
    assert!(sum("kctl_slots_gained_total") >= 8, "those that moved were gained more than once");
}

#[tokio::test(start_paused = true)]
async fn one_shard_leads_and_another_succeeds_it() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    assert!(a.leads() != b.leads());
    let (leader, other) = if a.leads() { (a, b) } else { (b, a) };
    leader.stop().await.unwrap();
    seconds(1).await;
    assert!(other.leads());
}

#[tokio::test(start_paused = true)]
async fn replica_without_lease_permission_is_not_ready() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    assert!(a.ready().is_ok() && b.ready().is_ok());
    b.faults.add(Fault::Reject(403), |request: &RequestSummary| request.path.contains("-seat-"));
    seconds(5).await;
    let rejected = b.ready().unwrap_err();
    assert!(
        rejected.starts_with("get the lease default/podset-seat-1") && rejected.ends_with("is rejected"),
        "{rejected}"
    );
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request: &RequestSummary| {
        request.path.ends_with("/leases") && request.method == "GET"
    });
    let c = world.start_on("c", faults, |manager, client| manager.shard(client, shards("c", N_SLOTS)).unwrap()).await;
    seconds(5).await;
    let rejected = c.ready().unwrap_err();
    assert!(rejected.starts_with("list leases") && rejected.ends_with("is rejected"), "{rejected}");
}

#[tokio::test(start_paused = true)]
async fn slots_return_after_a_minute_without_api_server() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    for replica in [&a, &b] {
        replica.faults.add(Fault::Break, |_: &RequestSummary| true);
    }
    world.change(1).await;
    seconds(60).await;
    for lost in [a, b] {
        assert!(matches!(lost.running.await.unwrap(), Err(ManagerError::LeaseLost(_))));
    }
    // New processes start, as after a restart by the kubelet.
    let (a, b) = (world.start("a2").await, world.start("b2").await);
    let took = world.reaches(1).await;
    // The Leases of the former processes have to expire first.
    assert!(took > Duration::from_secs(12) && took < Duration::from_secs(20), "{took:?}");
    assert_eq!(a.n_owned() + b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn one_replica_renews_settings_lease_without_conflicts() {
    let world = World::new(Duration::from_millis(20)).await;
    let replicas = [world.start("a").await, world.start("b").await, world.start("c").await];
    seconds(10).await;
    let before = world.contest.server.requests().len();
    seconds(60).await;
    assert!(replicas.iter().all(|replica| replica.ready().is_ok()));
    let requests = world.contest.server.requests().split_off(before);
    let about = requests.iter().filter(|request| request.resource == "leases" && request.name == "podset");
    let (reads, writes): (Vec<_>, Vec<_>) = about.partition(|request| request.verb == "get");
    assert!((28..=31).contains(&writes.len()), "{} writes by three replicas", writes.len());
    assert!(writes.iter().all(|request| request.code == 200));
    assert!((85..=95).contains(&reads.len()), "{} reads", reads.len());
}

#[tokio::test(start_paused = true)]
async fn replicas_starting_together_take_only_their_shares() {
    let world = World::new(Duration::from_millis(20)).await;
    let before = world.contest.server.requests().len();
    let (a, b, c) = (world.start("a").await, world.start("b").await, world.start("c").await);
    sleep(Duration::from_millis(1500)).await;
    let mut owned = [&a, &b, &c].map(Replica::n_owned);
    owned.sort_unstable();
    assert_eq!(owned, [2, 3, 3]);
    let requests = world.contest.server.requests().split_off(before);
    let of_slots = || requests.iter().filter(|request| request.resource == "leases" && request.name.contains("-slot-"));
    // No Lease was due for its renewal yet, so each update would be a release.
    assert_eq!(of_slots().filter(|request| request.verb == "update").count(), 0, "no slot has moved");
    assert!(of_slots().any(|request| request.verb == "get"));
    let lists = requests.iter().filter(|request| request.resource == "configmaps" && request.verb == "list");
    assert_eq!(lists.count(), 6, "each replica lists one item for its watch, and all of them once for its slots");
    world.reaches(0).await;
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn crashed_replicas_keys_run_within_lease_and_second() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    assert!(a.n_owned() > 0 && b.n_owned() > 0);
    a.crash().await;
    world.change(1).await;
    let took = world.reaches(1).await;
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(16), "{took:?}");
    assert_eq!(b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// The other replica reads the Leases of these slots every 2 to 4.4 s, and watches them.
#[tokio::test(start_paused = true)]
async fn awaited_slots_of_crashed_replica_run_within_lease() {
    for crash_after in [2, 3, 4, 5, 6] {
        let mut world = World::new(Duration::from_secs(8)).await;
        let a = world.start("a").await;
        seconds(100).await;
        world.takes = Duration::from_millis(20);
        let moved = slots_that_join_moves(&world).await;
        // Reconciles run for slots that are to move.
        let shards = a.view.shards().unwrap();
        for name in (0..N_KEYS).map(|number| format!("config-{number}")) {
            let slot = shards.explain(&ObjectKey::new(Some("default"), &name)).slot;
            if moved.contains(&slot) {
                change_config(&world.contest.client, &name, 1).await;
            }
        }
        sleep(Duration::from_millis(50)).await;
        let b = world.start("b").await;
        seconds(crash_after).await;
        assert!(b.n_owned() < moved.len(), "{} of the slots have moved", b.n_owned());
        a.crash().await;
        world.change(1).await;
        let took = world.reaches(1).await;
        assert!(took < Duration::from_secs(16), "crashed {crash_after} s after the start of the other: {took:?}");
        world.check_nothing_ran_twice();
    }
}

/// Returns the slots that a second replica takes. It has stopped again, and the first one has reconciled all keys.
async fn slots_that_join_moves(world: &World) -> BTreeSet<u32> {
    let b = world.start("b").await;
    seconds(20).await;
    let slots = b.view.shards().unwrap().slots();
    let moved = slots.into_iter().filter(|slot| slot.state == "owned").map(|slot| slot.slot).collect();
    b.stop().await.unwrap();
    seconds(100).await;
    moved
}

#[tokio::test(start_paused = true)]
async fn stopped_replica_keys_move_within_a_second() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    assert!(a.n_owned() > 0 && b.n_owned() > 0);
    world.change(1).await;
    a.stop().await.unwrap();
    let took = world.reaches(1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.check_nothing_ran_twice();
    assert_eq!(world.leases().await["podset-seat-0"], "", "its seat is free for the next replica");
}

/// A stop that polls without waiting would hold up the simulated time, and this test would not end.
#[tokio::test(start_paused = true)]
async fn replica_that_waits_for_other_seats_stops() {
    let world = World::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!((world.leases().await["podset-seat-0"].as_str(), a.n_owned()), ("a", 0), "it asks for no slot yet");
    a.faults.add(Fault::Delay(Duration::from_secs(2)), |request: &RequestSummary| request.path.contains("-seat-"));
    a.stop().await.unwrap();
    assert_eq!(world.leases().await["podset-seat-0"], "");
}

#[tokio::test(start_paused = true)]
async fn replica_taking_released_seat_takes_its_slots() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    let before = b.n_owned();
    a.stop().await.unwrap();
    let c = world.start("c").await;
    seconds(3).await;
    assert_eq!((b.n_owned(), c.n_owned()), (before, 8 - before));
    assert_eq!(world.leases().await["podset-seat-0"], "c");
}

#[tokio::test(start_paused = true)]
async fn replica_that_loses_its_leases_writes_nothing_more() {
    let world = World::new(Duration::from_secs(8)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    let lost = tokio::time::timeout(Duration::from_secs(15), a.running).await.expect("it ends by itself");
    let error = lost.unwrap().unwrap_err().to_string();
    assert!(error.contains("lost its Lease: the lease default/podset") && !error.contains("leader"), "{error}");
    world.change(1).await;
    seconds(300).await;
    assert_eq!(world.reached(1), (N_KEYS, ["b"].into()));
    assert_eq!(b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// The key's next owner does the work, so the rejected write is logged at debug level and counted as a conflict.
#[tokio::test(start_paused = true)]
async fn write_under_a_lost_slot_counts_as_conflict() {
    let world = World::new(Duration::from_secs(3)).await;
    let not_sent = Arc::<Mutex<Vec<Outcome>>>::default();
    let noted = not_sent.clone();
    let a = world.start_by("a", move |manager, client| {
        let manager = manager.shard(client, shards("a", N_SLOTS)).unwrap();
        manager.on_end(Arc::new(move |report| {
            if matches!(&report.outcome, Outcome::Failed { text, .. } if text.contains("not sent")) {
                noted.lock().push(report.outcome.clone());
            }
        }))
    });
    let a = a.await;
    let _b = world.start("b").await;
    seconds(3).await;
    // The Lease with the settings expires before those of the slots.
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.ends_with("/leases/podset"));
    for state in 1..20 {
        world.change(state).await;
        seconds(1).await;
    }
    let not_sent = not_sent.lock();
    assert!(!not_sent.is_empty());
    assert!(not_sent.iter().all(|outcome| matches!(outcome, Outcome::Failed { conflict: true, .. })), "{not_sent:?}");
}

#[tokio::test(start_paused = true)]
async fn slot_with_a_deleted_lease_keeps_one_owner() {
    let world = World::new(Duration::from_millis(200)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(10).await;
    let before = world.leases().await;
    for slot in 0..N_SLOTS {
        world.contest.leases().delete(&format!("podset-slot-{slot}"), &DeleteParams::default()).await.unwrap();
    }
    for state in 1..=10 {
        world.change(state).await;
        seconds(1).await;
    }
    world.reaches(10).await;
    assert_eq!(world.leases().await, before);
    assert_eq!(a.n_owned() + b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// The owner can't reach its Leases, so it does not recreate them. It works until its write permit ends.
#[tokio::test(start_paused = true)]
async fn new_replica_waits_before_taking_deleted_lease() {
    let world = World::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    seconds(10).await;
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    for slot in 0..N_SLOTS {
        world.contest.leases().delete(&format!("podset-slot-{slot}"), &DeleteParams::default()).await.unwrap();
    }
    let b = world.start("b").await;
    for state in 1..=14 {
        world.change(state).await;
        seconds(1).await;
        assert_eq!(b.n_owned(), 0, "{state} s after the deletion");
    }
    let owners: BTreeSet<_> = b.view.shards().unwrap().slots().into_iter().map(|slot| slot.owner).collect();
    assert_eq!(owners, ["(unknown: the Lease is missing)".to_owned()].into());
    seconds(2).await;
    assert_eq!(b.n_owned(), 8);
    let took = world.reaches(14).await;
    assert!(took < Duration::from_secs(4), "{took:?}");
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn owner_recreates_a_deleted_lease_before_others_start() {
    let world = World::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    seconds(10).await;
    for slot in 0..N_SLOTS {
        world.contest.leases().delete(&format!("podset-slot-{slot}"), &DeleteParams::default()).await.unwrap();
    }
    let b = world.start("b").await;
    world.change(1).await;
    seconds(4).await;
    assert_eq!(
        (a.n_owned(), b.n_owned()),
        (4, 4),
        "a Lease that is missing is created, also by an owner that hands it over"
    );
    world.reaches(1).await;
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn added_slots_are_taken_once_settings_lease_expires() {
    let world = World::new(Duration::from_millis(20)).await;
    let four = |manager: Manager, client| manager.shard(client, shards("a", 4)).unwrap();
    let a = world.start_by("a", four).await;
    seconds(10).await;
    a.stop().await.unwrap();
    let b = world.start("b").await;
    seconds(14).await;
    assert_eq!(b.n_owned(), 0, "the settings of 4 slots are held for 15 s");
    seconds(6).await;
    assert_eq!(b.n_owned(), 8, "no Lease of the slots 4 to 7 was there, and nothing waits for them");
}

/// Each reads the Lease of the settings every 2 to 4.4 s, and counts its validity from another time.
#[tokio::test(start_paused = true)]
async fn replicas_with_new_settings_begin_together() {
    let world = World::new(Duration::from_millis(20)).await;
    let four = |manager: Manager, client| manager.shard(client, shards("a", 4)).unwrap();
    let a = world.start_by("a", four).await;
    seconds(10).await;
    a.stop().await.unwrap();
    let mut replicas = Vec::new();
    for name in ["b", "c", "d"] {
        replicas.push(world.start(name).await);
        sleep(Duration::from_millis(300)).await;
    }
    seconds(13).await;
    assert_eq!(replicas.iter().map(Replica::n_owned).sum::<usize>(), 0, "the old settings are held for 15 s");
    seconds(3).await;
    assert_eq!(replicas.iter().map(Replica::n_owned).sum::<usize>(), 8);
    let n_gained = replicas.iter().map(|replica| replica.view.shards().unwrap().n_gained());
    assert_eq!(n_gained.sum::<u64>(), 8, "no slot has moved");
}

#[tokio::test(start_paused = true)]
async fn replica_with_another_number_of_slots_is_rejected() {
    let world = World::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    seconds(3).await;
    let other = |manager: Manager, client| manager.shard(client, shards("b", 4)).unwrap();
    let b = world.start_by("b", other).await;
    seconds(60).await;
    assert_eq!((a.n_owned(), b.n_owned()), (8, 0));
    let text =
        "other replicas run as `shards-8-by-object` and this one as `shards-4-by-object`: use the same --shards in all";
    assert_eq!(b.ready().unwrap_err(), text);
    assert_eq!((a.metric("kctl_slots_rejected"), b.metric("kctl_slots_rejected")), (0, 1));
    let view = b.view.shards().unwrap();
    let owners = view.slots().into_iter().map(|slot| slot.owner);
    assert_eq!(owners.collect::<Vec<_>>(), [""; 4], "the Leases are of other slots");
    assert!(view.slots().iter().all(|slot| slot.moves.is_none()));
    assert_eq!(view.explain(&"default/web".parse().unwrap()).owner, "");
    a.stop().await.unwrap();
    seconds(20).await;
    assert_eq!((b.n_owned(), b.ready().is_ok()), (4, true));
    world.check_nothing_ran_twice();
}

/// With common slots, no replica would reconcile the objects of a slot whose owner does not watch their namespace.
#[tokio::test(start_paused = true)]
async fn replica_with_other_namespaces_is_rejected() {
    let world = World::new(Duration::from_millis(20)).await;
    let limited = |identity| shards(identity, N_SLOTS).in_namespaces(["default".to_owned()]);
    let a = world.start_by("a", |manager, client| manager.shard(client, limited("a")).unwrap()).await;
    let b = world.start_by("b", |manager, client| manager.shard(client, limited("b")).unwrap()).await;
    seconds(3).await;
    let c = world.start("c").await;
    seconds(60).await;
    assert_eq!((a.n_owned() + b.n_owned(), c.n_owned()), (8, 0));
    let rejected = c.ready().unwrap_err();
    let text = "other replicas run as `shards-8-by-object-in-default` and this one as `shards-8-by-object`: use the same \
                --namespace in all";
    assert_eq!(rejected, text);
    let reason = |key: &str| a.view.shards().unwrap().explain(&key.parse().unwrap()).reason;
    assert!(reason("blog/web").contains("namespace blog is not watched here: --namespace"), "{}", reason("blog/web"));
    assert!(!reason("default/web").contains("not watched"), "{}", reason("default/web"));
}

#[tokio::test(start_paused = true)]
async fn sharded_replica_waits_until_elected_leader_stops() {
    let world = World::new(Duration::from_millis(20)).await;
    let leader = world.start_by("a", |manager, _client| manager.elect(config("a")).unwrap()).await;
    world.reaches(0).await;
    let b = world.start("b").await;
    seconds(30).await;
    assert_eq!(b.n_owned(), 0);
    let text = "another replica (a) runs with --leader-elect: stop all replicas, then start them with one mode";
    assert_eq!(b.ready().unwrap_err(), text);
    leader.stop.send(()).unwrap();
    leader.running.await.unwrap().unwrap();
    seconds(1).await;
    assert_eq!(b.n_owned(), 8);
}

#[tokio::test(start_paused = true)]
async fn replica_beyond_the_slots_is_ready_and_waits() {
    let world = World::new(Duration::from_millis(20)).await;
    let one =
        |identity: &'static str| move |manager: Manager, client| manager.shard(client, shards(identity, 1)).unwrap();
    let a = world.start_by("a", one("a")).await;
    seconds(1).await;
    let b = world.start_by("b", one("b")).await;
    seconds(10).await;
    assert_eq!((a.n_owned(), b.n_owned()), (1, 0));
    assert_eq!(b.ready(), Ok("owns 0 of 1 slots, without a seat".into()));
    a.stop().await.unwrap();
    seconds(2).await;
    assert_eq!(b.n_owned(), 1);
}

#[tokio::test(start_paused = true)]
async fn rolling_update_under_load_reconciles_each_key_once() {
    let world = World::new(Duration::from_millis(20)).await;
    let mut old = Vec::new();
    for replica in ["a", "b", "c"] {
        old.push(world.start(replica).await);
        seconds(2).await;
    }
    let mut new = Vec::new();
    for (state, (replica, old)) in (1..).zip(["d", "e", "f"].into_iter().zip(old)) {
        world.change(state * 10).await;
        new.push(world.start(replica).await);
        world.change(state * 10 + 1).await;
        seconds(1).await;
        world.change(state * 10 + 2).await;
        old.stop().await.unwrap();
        world.change(state * 10 + 3).await;
        let took = world.reaches(state * 10 + 3).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    world.check_nothing_ran_twice();
    assert_eq!(new.iter().map(Replica::n_owned).sum::<usize>(), 8);
    assert_eq!(world.seen.lock().failed, []);
}

/// The order in which a rolling update replaces a replica.
#[derive(Clone, Copy)]
enum Replacement {
    /// Like a Deployment with `maxSurge: 1` and `maxUnavailable: 0`: a new Pod starts, then an old one stops.
    StartFirst,
    /// Like a `StatefulSet`: an old Pod stops, then the new one starts.
    StopFirst,
}

/// A rolling update, with a record of the slots that have moved.
struct Rollout {
    world: World,
    /// Running replicas, the oldest first.
    running: Vec<Replica>,
    /// The slots as each process sees them, including those of processes that have stopped.
    views: Vec<ShardView>,
    /// Number of slots that all processes together have gained, after each start and each stop.
    gained: Vec<u64>,
    n_slots: u32,
}

impl Rollout {
    async fn start(&mut self, replica: &'static str) {
        let n_slots = self.n_slots;
        let set_up = |manager: Manager, client| manager.shard(client, shards(replica, n_slots)).unwrap();
        let started = self.world.start_by(replica, set_up).await;
        self.views.push(started.view.shards().unwrap().clone());
        self.running.push(started);
        self.settle().await;
    }

    async fn stop_oldest(&mut self) {
        self.running.remove(0).stop().await.unwrap();
        self.settle().await;
    }

    /// Waits until each running replica has its share of the slots, and notes how many slots were gained until then.
    async fn settle(&mut self) {
        seconds(5).await;
        let owned: Vec<usize> = self.running.iter().map(Replica::n_owned).collect();
        let n_slots = self.n_slots as usize;
        let share = n_slots.div_ceil(owned.len());
        assert!(owned.iter().sum::<usize>() == n_slots && owned.iter().all(|n| *n <= share), "{owned:?} of {n_slots}");
        self.gained.push(self.views.iter().map(ShardView::n_gained).sum());
    }
}

/// Replaces three replicas, the oldest first. Returns the number of slots that moved at each start and at each stop.
async fn moves_of_rollout(order: Replacement, n_slots: u32) -> Vec<u64> {
    let world = World::new(Duration::from_millis(20)).await;
    let mut rollout = Rollout { world, running: Vec::new(), views: Vec::new(), gained: Vec::new(), n_slots };
    for replica in ["a", "b", "c"] {
        rollout.start(replica).await;
    }
    let before = rollout.gained.len() - 1;
    for replica in ["d", "e", "f"] {
        match order {
            Replacement::StartFirst => {
                rollout.start(replica).await;
                rollout.stop_oldest().await;
            }
            Replacement::StopFirst => {
                rollout.stop_oldest().await;
                rollout.start(replica).await;
            }
        }
    }
    rollout.world.check_nothing_ran_twice();
    rollout.gained[before..].windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// `guide/sharding.md` has these sums. Each slot moves at least once, because no old replica remains.
#[tokio::test(start_paused = true)]
async fn rolling_update_moves_slots_by_its_order() {
    for (n_slots, expected) in [(16, [30, 36]), (8, [21, 16])] {
        let deployment = moves_of_rollout(Replacement::StartFirst, n_slots).await;
        let stateful_set = moves_of_rollout(Replacement::StopFirst, n_slots).await;
        let sums = [&deployment, &stateful_set].map(|moves| moves.iter().sum::<u64>());
        assert!(sums.iter().all(|sum| *sum >= u64::from(n_slots)), "{deployment:?}, {stateful_set:?}");
        assert_eq!(
            sums, expected,
            "update guide/sharding.md; {n_slots} slots: a Deployment {deployment:?}, a StatefulSet {stateful_set:?}"
        );
    }
}

/// The list of a large kind takes long. Its response arrives after newer watch events.
#[tokio::test(start_paused = true)]
async fn list_overtaken_by_the_watch_fills_gained_slots() {
    let world = World::new(Duration::from_millis(5)).await;
    let a = world.start("a").await;
    world.reaches(0).await;
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
    world.reaches(40).await;
    world.check_nothing_ran_twice();
    assert_eq!(shares(&[&a, &b]).iter().map(BTreeSet::len).sum::<usize>(), N_KEYS);
}

/// Returns the cached `ConfigMap`s of each replica. Checks that exactly their Secrets are cached with them.
fn shares(replicas: &[&Replica]) -> Vec<BTreeSet<String>> {
    let shares: Vec<_> = replicas.iter().map(|replica| replica.cached("configmaps")).collect();
    for (replica, share) in replicas.iter().zip(&shares) {
        assert_eq!(replica.cached("secrets"), *share);
    }
    let all: BTreeSet<_> = shares.iter().flatten().cloned().collect();
    let n_cached: usize = shares.iter().map(BTreeSet::len).sum();
    assert_eq!((all.len(), n_cached), (N_KEYS, N_KEYS), "each object is in one cache");
    shares
}

#[tokio::test(start_paused = true)]
async fn replica_caches_its_share_of_primaries_and_children() {
    let world = World::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    world.reaches(0).await;
    assert_eq!(shares(&[&a])[0].len(), N_KEYS);
    let b = world.start("b").await;
    let c = world.start("c").await;
    seconds(3).await;
    assert!(shares(&[&a, &b, &c]).iter().all(|share| share.len() < N_KEYS * 2 / 3));
    assert_eq!([&a, &b, &c].map(Replica::n_owned).iter().max(), Some(&3), "8 slots for three");
    world.change(1).await;
    world.reaches(1).await;
    shares(&[&a, &b, &c]);
    b.stop().await.unwrap();
    seconds(2).await;
    shares(&[&a, &c]);
    c.crash().await;
    seconds(20).await;
    assert_eq!(shares(&[&a])[0].len(), N_KEYS);
    world.change(2).await;
    world.reaches(2).await;
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn child_that_changes_its_owner_changes_the_cache() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    let [from, to] = [&a, &b].map(|replica| replica.cached("configmaps").pop_first().unwrap());
    let secrets = Api::<Secret>::default_namespaced(world.contest.client.clone());
    let owned_by = async |name: &str| {
        let uid = world.configs().get(name).await.unwrap().metadata.uid;
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true });
        json!({ "metadata": { "name": "extra", "ownerReferences": [owner] } })
    };
    let extra = kctl::from_json(owned_by(&from).await).unwrap();
    secrets.create(&PostParams::default(), &extra).await.unwrap();
    seconds(1).await;
    assert!(a.cached("secrets").contains("extra") && !b.cached("secrets").contains("extra"));
    let runs = || [&from, &to].map(|name| world.seen.lock().n_runs[name]);
    let before = runs();
    secrets.patch("extra", &PatchParams::default(), &Patch::Merge(owned_by(&to).await)).await.unwrap();
    seconds(1).await;
    assert!(!a.cached("secrets").contains("extra") && b.cached("secrets").contains("extra"));
    let after = runs();
    assert!(after[0] > before[0] && after[1] > before[1], "both owners are reconciled: {before:?}, {after:?}");
    // A Secret without an owner belongs to no slot.
    let orphan = json!({ "metadata": { "ownerReferences": null } });
    secrets.patch("extra", &PatchParams::default(), &Patch::Merge(orphan)).await.unwrap();
    seconds(1).await;
    assert!(![&a, &b].iter().any(|replica| replica.cached("secrets").contains("extra")));
}

/// Creates a `Secret`, optionally with this `ConfigMap` as its controller.
async fn create_secret(world: &World, name: &str, owner: Option<&str>) {
    let mut metadata = json!({ "name": name });
    if let Some(owner) = owner {
        let uid = world.configs().get(owner).await.unwrap().metadata.uid;
        metadata["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "controller": true }]);
    }
    let secret = kctl::from_json(json!({ "metadata": metadata })).unwrap();
    Api::<Secret>::default_namespaced(world.contest.client.clone())
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

async fn create_config(world: &World, name: &str) {
    let config = json!({ "metadata": { "name": name }, "data": { "state": "0" } });
    world.configs().create(&PostParams::default(), &kctl::from_json(config).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn orphan_is_adopted_by_its_new_owners_replica() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    for number in 0..8 {
        create_secret(&world, &format!("orphan-{number}"), None).await;
    }
    seconds(1).await;
    let orphans = |replica: &Replica| {
        let secrets = replica.cached("secrets").into_iter().filter(|name| name.starts_with("orphan-"));
        secrets.collect::<BTreeSet<_>>()
    };
    assert!(orphans(&a).is_empty() && orphans(&b).is_empty(), "an orphan belongs to no slot");
    for number in 0..8 {
        create_config(&world, &format!("orphan-{number}")).await;
    }
    seconds(1).await;
    let (of_a, of_b) = (orphans(&a), orphans(&b));
    assert!(!of_a.is_empty() && !of_b.is_empty() && of_a.is_disjoint(&of_b), "{of_a:?} and {of_b:?}");
    assert_eq!(of_a.len() + of_b.len(), 8);
    for replica in [&a, &b] {
        assert!(orphans(replica).is_subset(&replica.cached("configmaps")));
    }
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn child_of_another_replicas_primary_is_not_adopted() {
    let world = World::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    seconds(3).await;
    let owner = a.cached("configmaps").pop_first().unwrap();
    let names: Vec<_> = (0..8).map(|number| format!("taken-{number}")).collect();
    for name in &names {
        create_secret(&world, name, Some(&owner)).await;
        create_config(&world, name).await;
    }
    seconds(1).await;
    let of_b: Vec<_> = names.iter().filter(|name| b.cached("configmaps").contains(*name)).collect();
    assert!(!of_b.is_empty() && of_b.len() < 8, "{of_b:?}");
    // The replica that caches the child knows its controller. The other replica gets the error from the API server.
    let expected =
        |by| if by == "a" { "is not controlled by ConfigMap" } else { "only one owner may be the controller" };
    let failed: Vec<_> = world.seen.lock().failed.clone();
    assert_eq!(failed.iter().map(|(by, _)| *by).collect::<BTreeSet<_>>(), ["a", "b"].into());
    assert!(failed.iter().all(|(by, error)| error.contains(expected(*by))), "{:?}", failed.first());
    assert!(names.iter().all(|name| a.cached("secrets").contains(name) && !b.cached("secrets").contains(name)));
}

#[tokio::test(start_paused = true)]
async fn metrics_keep_share_and_whole_cache_apart() {
    let world = World::new(Duration::from_millis(20)).await;
    let mut watches = None;
    let a = world.start_by("a", |manager, client| {
        watches = Some(manager.watches());
        manager.shard(client, shards("a", N_SLOTS)).unwrap()
    });
    let a = a.await;
    let b = world.start("b").await;
    seconds(5).await;
    let mut all = watches.unwrap().watch::<Secret>(WatchConfig::of::<Secret>()).await.unwrap();
    let _first = all.next().await;
    seconds(1).await;
    let text = a.metrics.text(Format::Prometheus);
    for (name, n) in [("", a.cached("secrets").len()), (";watched", N_KEYS)] {
        let sample =
            format!("kctl_cache_objects{{name=\"{name}\",group=\"\",version=\"v1\",resource=\"secrets\"}} {n}\n");
        assert!(text.contains(&sample), "no {sample} in {text}");
    }
    assert!(b.n_owned() > 0);
}

/// Keeps a `Secret` in each `Namespace` whose name begins with `shop-`.
#[controller(owns = Secret(apply), name = "spaces")]
async fn spaces(space: Arc<Namespace>, cx: Context<spaces>) -> Result<Action> {
    if space.name_any().starts_with("shop-") {
        cx.owned::<Secret>()
            .apply(json!({ "metadata": { "name": "of-space", "namespace": space.name_any() } }))
            .await?;
    }
    Ok(Action::await_change())
}

#[controller(name = "settings")]
async fn settings(_config: Arc<ConfigMap>, _cx: Context<settings>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn namespace_and_its_objects_belong_to_one_replica() {
    let contest = Contest::new();
    let client = contest.client.clone();
    let names: Vec<_> = (0..8).map(|number| format!("shop-{number}")).collect();
    let by = Arc::<Mutex<BTreeMap<String, &'static str>>>::default();
    let mut views = Vec::new();
    for replica in ["a", "b"] {
        let app = App::new("podset").controller::<spaces>().controller::<settings>();
        let slots = ShardConfig::new(config(replica), N_SLOTS, ShardBy::Namespace).unwrap();
        let manager = app.manager(client.clone()).await.unwrap().shard(client.clone(), slots).unwrap();
        let noted = by.clone();
        let manager = manager.on_end(Arc::new(move |report| {
            noted.lock().insert(format!("{} {}", report.controller, report.key), replica);
        }));
        views.push(manager.view());
        tokio::spawn(manager.run(std::future::pending()));
    }
    seconds(5).await;
    for name in &names {
        let space = kctl::from_json(json!({ "metadata": { "name": name } })).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &space).await.unwrap();
        let config = kctl::from_json(json!({ "metadata": { "name": "settings" } })).unwrap();
        Api::<ConfigMap>::namespaced(client.clone(), name).create(&PostParams::default(), &config).await.unwrap();
    }
    seconds(2).await;
    let by = by.lock().clone();
    let owners: Vec<_> = names.iter().map(|name| by[&format!("spaces {name}")]).collect();
    assert_eq!(owners.iter().collect::<BTreeSet<_>>().len(), 2, "{owners:?}");
    for (name, owner) in names.iter().zip(&owners) {
        assert_eq!(by[&format!("settings {name}/settings")], *owner, "{name}");
        for (replica, view) in ["a", "b"].into_iter().zip(&views) {
            let source = view.sources().iter().find(|source| source.config().kind.plural == "secrets").unwrap();
            let all = source.store().all();
            let is_cached = all.iter().any(|secret| secret.key().namespace.as_deref() == Some(name));
            assert_eq!(is_cached, replica == *owner, "the Secret in {name} is where its owner, the Namespace, is");
        }
    }
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
    seconds(5).await;
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

/// Runs a replica with a separate clock, which can be stopped while the others continue.
mod frozen {
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
    }

    const STEP: Duration = Duration::from_millis(50);

    fn drive(runtimes: &[&Runtime], time: Duration) {
        let n_steps = time.as_millis() / STEP.as_millis();
        for _ in 0..n_steps {
            for runtime in runtimes {
                runtime.block_on(async { sleep(STEP).await });
            }
        }
    }

    #[test]
    fn frozen_replica_with_expired_leases_writes_nothing() {
        let (ours, theirs) = (runtime(), runtime());
        let world = ours.block_on(World::new(Duration::from_secs(2)));
        let a = theirs.block_on(world.start("a"));
        let both = [&ours, &theirs];
        let b = ours.block_on(world.start("b"));
        drive(&both, Duration::from_secs(40));
        assert!(a.n_owned() > 0 && b.n_owned() > 0, "{} and {}", a.n_owned(), b.n_owned());
        ours.block_on(world.change(1));
        drive(&both, Duration::from_secs(1));
        let busy = world.seen.lock().busy.len();
        assert!(busy > 4, "both are at work: {busy}");
        let by_a = |world: &World| world.seen.lock().last.n_by("a");
        let before = by_a(&world);
        assert!(before > 0);
        // SIGSTOP for 20 s, then SIGCONT.
        drive(&[&ours], Duration::from_secs(20));
        assert_eq!(b.n_owned(), 8);
        let n_written = |world: &World| {
            let written = ours.block_on(async {
                Api::<Secret>::default_namespaced(world.contest.client.clone()).list(&ListParams::default()).await
            });
            let by = |secret: &Secret| secret.data.as_ref().and_then(|data| data.get("by")).map(|by| by.0.clone());
            written.unwrap().iter().filter(|secret| by(secret).is_some_and(|by| by == b"a")).count()
        };
        let written = n_written(&world);
        theirs.block_on(async { tokio::time::advance(Duration::from_secs(20)).await });
        drive(&both, Duration::from_secs(5));
        assert!(n_written(&world) <= written, "it wrote after it was continued");
        assert!(a.running.is_finished(), "its Leases are lost");
        drive(&both, Duration::from_secs(60));
        assert_eq!(world.reached(1), (N_KEYS, ["b"].into()));
    }
}

/// Runs two replicas with a role, stops one of them, and returns the requests for Leases that were rejected.
async fn rejected_under(rules: &kctl::Json) -> Vec<String> {
    let server = ApiServer::new();
    let admin = Client::new(server.service(), "default");
    let (roles, bindings) =
        (Api::<Role>::default_namespaced(admin.clone()), Api::<RoleBinding>::default_namespaced(admin));
    let role = kctl::from_json(json!({ "metadata": { "name": "app" }, "rules": rules })).unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({
        "metadata": { "name": "app" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "app" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "app" }],
    });
    bindings.create(&PostParams::default(), &kctl::from_json(binding).unwrap()).await.unwrap();
    let user = User::new("app").in_group("system:authenticated");
    let client = || Client::new(server.service_as(user.clone()), "default");
    let mut stops = Vec::new();
    for replica in ["a", "b"] {
        let app = App::new("podset");
        let manager = app.manager(client()).await.unwrap().shard(client(), shards(replica, 2)).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        stops.push((stop, tokio::spawn(manager.run(async move { drop(stopped.await) }))));
        seconds(3).await;
    }
    let (stop, running) = stops.remove(0);
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    seconds(8).await;
    let rejected = server.requests().into_iter().filter(|request| request.code == 403 && request.resource == "leases");
    rejected.map(|request| format!("{} {}", request.verb, request.name)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_permission_of_the_printed_role_is_needed() {
    let names = RbacOptions::new("podset", "default");
    let options = ManagerOptions::default().with_shards(2);
    let manifests = manager_rbac(&names, options).unwrap();
    assert_eq!(manifests[0].file, "rbac/role-podset-shards.default.yaml");
    let rules = manifests[0].object["rules"].clone();
    assert_eq!(rejected_under(&rules).await, [""; 0], "the whole role is enough");
    for (index, rule) in rules.as_array().unwrap().iter().enumerate() {
        for field in ["verbs", "resourceNames"] {
            for part in 0..rule[field].as_array().map_or(0, Vec::len) {
                let mut fewer = rules.clone();
                let dropped = fewer[index][field].as_array_mut().unwrap().remove(part);
                assert!(!rejected_under(&fewer).await.is_empty(), "{dropped} of rule {index} is not needed");
            }
        }
    }
}
