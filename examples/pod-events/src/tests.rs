//! Tests the controller on the embedded API server, with paused time. So waits take no time, and every run is the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Container, PodSpec};
use kctl_apiserver::ApiServer;
use kctl_tests::{Fault, Faults};
use kube::{Api, api::PostParams};
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::*;

/// A handler that records its calls, and that can fail or wait for some keys.
#[derive(Clone, Default)]
struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
    failing: BTreeMap<&'static str, u32>,
    takes: Duration,
    in_hands: Arc<Mutex<BTreeSet<String>>>,
    most_at_once: Arc<Mutex<usize>>,
}

impl SyncHandler for Recorder {
    fn synced(&self, pods: &Store<Pod>) {
        self.lines.lock().push(format!("synced {} {}", pods.len(), pods.by_index(on_node, "node-1").count()));
    }

    async fn sync(&self, key: &Key<Pod>, pod: Option<Arc<Pod>>) -> Result<(), Failure> {
        if !self.in_hands.lock().insert(key.to_string()) {
            self.lines.lock().push(format!("{key} is in the hands of two workers"));
        }
        let n_now = self.in_hands.lock().len();
        let most = (*self.most_at_once.lock()).max(n_now);
        *self.most_at_once.lock() = most;
        sleep(self.takes).await;
        self.in_hands.lock().remove(&key.to_string());
        let n_tries = self.lines.lock().iter().filter(|line| **line == format!("failed {key}")).count();
        if self.failing.get(key.name()).is_some_and(|fails| n_tries < *fails as usize) {
            self.lines.lock().push(format!("failed {key}"));
            return Err("out of luck".into());
        }
        self.lines.lock().push(crate::line(key, pod.as_deref()));
        Ok(())
    }

    fn dropped(&self, key: &Key<Pod>, error: &Failure) {
        self.lines.lock().push(format!("dropped {key}: {error}"));
    }
}

/// A server with a running controller.
struct World {
    pods: Api<Pod>,
    server: ApiServer,
    faults: Faults,
    recorder: Recorder,
    stop: oneshot::Sender<()>,
    run: JoinHandle<()>,
}

impl World {
    /// Creates these pods, and starts the controller.
    async fn start(present: &[&str], n_workers: usize, recorder: Recorder) -> Self {
        let server = ApiServer::new();
        let pods = Api::<Pod>::default_namespaced(Client::new(server.service(), "default"));
        for name in present {
            pods.create(&PostParams::default(), &pod(name)).await.unwrap();
        }
        let faults = Faults::default();
        let controller = PodController::new(faults.client(&server), recorder.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let n_workers = NonZeroUsize::new(n_workers).unwrap();
        let run = tokio::spawn(controller.run(n_workers, async { drop(stopped.await) }));
        sleep(Duration::from_secs(1)).await;
        Self { pods, server, faults, recorder, stop, run }
    }

    async fn create(&self, name: &str) {
        self.pods.create(&PostParams::default(), &pod(name)).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }

    async fn delete(&self, name: &str) {
        self.pods.delete(name, &kube::api::DeleteParams::default().grace_period(0)).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }

    /// Removes and returns the lines recorded since the last call.
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.recorder.lines.lock())
    }
}

fn pod(name: &str) -> Pod {
    let container = Container { name: "main".into(), image: Some("nginx".into()), ..Container::default() };
    let mut pod = Pod { spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }), ..Pod::default() };
    pod.metadata.name = Some(name.into());
    pod
}

#[tokio::test(start_paused = true)]
async fn existing_pods_are_synced_after_initial_list() {
    let world = World::start(&["a", "b"], 2, Recorder::default()).await;
    assert_eq!(world.lines(), ["synced 2 0", "Sync/Add/Update for Pod default/a", "Sync/Add/Update for Pod default/b"]);
}

#[tokio::test(start_paused = true)]
async fn added_and_deleted_pods_are_printed() {
    let world = World::start(&[], 2, Recorder::default()).await;
    world.create("a").await;
    world.delete("a").await;
    assert_eq!(
        world.lines(),
        ["synced 0 0", "Sync/Add/Update for Pod default/a", "Pod default/a does not exist anymore"]
    );
}

#[tokio::test(start_paused = true)]
async fn pods_deleted_during_watch_outage_are_printed() {
    let world = World::start(&["a", "b"], 2, Recorder::default()).await;
    world.lines();
    world.faults.add(Fault::Break, |_| true);
    world.faults.cut_watches();
    world.delete("a").await;
    world.server.compact();
    assert_eq!(world.lines(), [""; 0], "nothing is known while the watch is down");
    world.faults.clear();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.lines(), ["Pod default/a does not exist anymore"]);
}

#[tokio::test(start_paused = true)]
async fn failing_key_is_retried_five_times_then_dropped() {
    let recorder = Recorder { failing: BTreeMap::from([("bad", u32::MAX)]), ..Recorder::default() };
    let world = World::start(&["bad", "good"], 1, recorder).await;
    let lines = world.lines();
    let failed = lines.iter().filter(|line| *line == "failed default/bad").count();
    assert_eq!(failed, 1 + RETRIES_MAX as usize);
    assert_eq!(lines.last().unwrap(), "dropped default/bad: out of luck");
    assert!(lines.contains(&"Sync/Add/Update for Pod default/good".to_owned()));
    world.delete("bad").await;
    assert_eq!(world.lines()[0], "failed default/bad", "a change brings a key back that was given up");
}

#[tokio::test(start_paused = true)]
async fn success_at_the_last_retry_is_not_reported() {
    let recorder = Recorder { failing: BTreeMap::from([("bad", RETRIES_MAX)]), ..Recorder::default() };
    let world = World::start(&["bad"], 1, recorder).await;
    let mut expected = vec!["synced 1 0"];
    expected.extend(["failed default/bad"; RETRIES_MAX as usize]);
    expected.push("Sync/Add/Update for Pod default/bad");
    assert_eq!(world.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn no_key_runs_in_two_workers_at_once() {
    let recorder = Recorder { takes: Duration::from_secs(10), ..Recorder::default() };
    let world = World::start(&["a", "b", "c"], 3, recorder).await;
    // A worker is handling the pod during all these changes.
    for _ in 0..5 {
        world.delete("a").await;
        world.create("a").await;
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*world.recorder.most_at_once.lock(), 3);
    let lines = world.lines();
    assert!(!lines.iter().any(|line| line.ends_with("two workers")), "{lines:?}");
    let n_of_a = lines.iter().filter(|line| *line == "Sync/Add/Update for Pod default/a").count();
    assert_eq!(n_of_a, 2, "once for the list and once for all changes since: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn keys_in_hand_are_finished_at_the_end() {
    let recorder = Recorder { takes: Duration::from_secs(10), ..Recorder::default() };
    let world = World::start(&["a", "b"], 1, recorder.clone()).await;
    world.stop.send(()).unwrap();
    world.run.await.unwrap();
    assert_eq!(recorder.lines.lock().len(), 3, "{:?}", recorder.lines.lock());
}

#[tokio::test(start_paused = true)]
async fn stop_before_initial_list_returns_at_once() {
    let server = ApiServer::new();
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request| request.reads("pods"));
    let recorder = Recorder::default();
    let controller = PodController::new(faults.client(&server), recorder.clone());
    let before = Instant::now();
    controller.run(NonZeroUsize::MIN, sleep(Duration::from_secs(5))).await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert!(recorder.lines.lock().is_empty());
}
