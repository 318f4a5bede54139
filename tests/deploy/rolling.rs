//! A rolling update of three replica processes while objects change. All replicas append to a shared journal.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime},
};

use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use kctl::{
    Json, json,
    kube::{
        Api,
        api::{ListParams, Patch, PatchParams, PostParams},
    },
    prelude::{ConfigMap, ObjectMeta, ResourceExt, Secret},
};
use tokio::{
    process::{Child, Command},
    sync::watch,
    time::MissedTickBehavior,
};

use crate::{
    build,
    cluster::{Cluster, until},
    files::Folder,
    program::{free_port, page},
};

/// Number of objects in a replica's cache; most of them never change.
const N_OBJECTS: usize = 5_000;
const N_CHANGING: usize = 200;
/// The rate of changes on a machine that is fast enough. Several clients send them, so that no change waits for the
/// previous response.
const CHANGES_PER_SECOND: usize = 200;
/// Maximum number of changes without a working replica. A hand-over may take one second (`tests/manager/rolling.rs`
/// measures it with simulated time), and a machine that builds and tests at the same time gets another second.
const MISSED_MAX: usize = 2 * CHANGES_PER_SECOND;
const N_CLIENTS: usize = 4;
const BETWEEN_CHANGES: Duration = Duration::from_millis(1_000 * N_CLIENTS as u64 / CHANGES_PER_SECOND as u64);
const REPLICAS: [(&str, &str); 3] = [("a-old", "a-new"), ("b-old", "b-new"), ("c-old", "c-new")];

/// The server, the namespace and the files of the test.
struct RolloutWorld<'a> {
    cluster: &'a Cluster,
    namespace: String,
    files: Folder,
}

struct Replica {
    name: &'static str,
    process: Child,
}

/// A line of the journal. Its time is in microseconds since 1970.
struct Line {
    at: u128,
    replica: String,
    begins: bool,
    key: String,
}

/// The times of all writes, and the last state of each object.
#[derive(Default)]
struct Load {
    times: Vec<u128>,
    states: BTreeMap<String, String>,
}

fn now() -> u128 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()
}

impl<'a> RolloutWorld<'a> {
    async fn new(cluster: &'a Cluster) -> Self {
        let namespace = format!("rolling-{}", std::process::id());
        let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": &namespace } });
        cluster.apply(&space, "").await;
        let world = Self { cluster, namespace, files: Folder::new() };
        std::fs::write(world.journal_file(), "").unwrap();
        std::fs::write(world.files.join("kubeconfig"), cluster.kubeconfig_at(&world.namespace)).unwrap();
        let api = &world.configs();
        let create = |number| async move {
            let metadata = ObjectMeta { name: Some(format!("config-{number}")), ..ObjectMeta::default() };
            let data = (number < N_CHANGING).then(|| [("state".to_owned(), "0".to_owned())].into());
            api.create(&PostParams::default(), &ConfigMap { metadata, data, ..ConfigMap::default() }).await.map(drop)
        };
        stream::iter(0..N_OBJECTS).map(create).buffer_unordered(16).try_collect::<()>().await.unwrap();
        world
    }

    fn configs(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.admin.clone(), &self.namespace)
    }

    fn journal_file(&self) -> std::path::PathBuf {
        self.files.join("journal")
    }

    fn journal(&self) -> Vec<Line> {
        std::fs::read_to_string(self.journal_file()).unwrap().lines().map(Line::read).collect()
    }

    /// Starts a replica, and waits until its readiness probe succeeds.
    async fn start(&self, name: &'static str, program: &Path) -> Replica {
        let (port, log) = (free_port(), self.files.join(name));
        let mut command = Command::new(program);
        command.args(["run", "--leader-elect", "--leader-election-identity", name, "--namespace", &self.namespace]);
        command.args([format!("--health-probe-bind-address=127.0.0.1:{port}"), "--metrics-bind-address=0".into()]);
        command.env("KUBECONFIG", self.files.join("kubeconfig")).env("REPLICA", name);
        command.env("JOURNAL", self.journal_file()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(&log).unwrap()).kill_on_drop(true);
        let process = command.spawn().unwrap();
        until(&format!("{name} is ready; see {}", log.display()), || async {
            page("http", port, "/readyz", None).await.is_ok()
        })
        .await;
        Replica { name, process }
    }

    /// Stops a replica with SIGTERM, as a kubelet does.
    async fn stop(&self, mut replica: Replica) {
        let id = replica.process.id().unwrap().to_string();
        build::run(std::process::Command::new("kill").args(["-TERM", &id]));
        let ended = replica.process.wait().await.unwrap();
        let log = std::fs::read_to_string(self.files.join(replica.name)).unwrap();
        assert!(ended.success(), "{}: {log}", replica.name);
    }

    async fn leader(&self) -> String {
        let lease =
            json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "rolling" } });
        let lease = self.cluster.get(&lease, &self.namespace).await.unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the state in each object's Secret.
    async fn states(&self) -> BTreeMap<String, String> {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.admin.clone(), &self.namespace);
        let found = secrets.list(&ListParams::default()).await.unwrap();
        let state = |secret: &Secret| String::from_utf8(secret.data.as_ref()?.get("state")?.0.clone()).ok();
        found.iter().filter_map(|secret| Some((secret.name_any(), state(secret)?))).collect()
    }

    /// Changes one object after another until it is stopped.
    async fn load(&self, stopped: watch::Receiver<bool>) -> Load {
        let loads = (0..N_CLIENTS).map(|client| change(self.configs(), client, stopped.clone()));
        let mut all = Load::default();
        for Load { times, states } in join_all(loads).await {
            all.times.extend(times);
            all.states.extend(states);
        }
        all
    }
}

/// Changes every `N_CLIENTS`-th object, so that each object is changed by a single client.
async fn change(api: Api<ConfigMap>, client: usize, stopped: watch::Receiver<bool>) -> Load {
    let mut load = Load::default();
    let mut ticks = tokio::time::interval(BETWEEN_CHANGES);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in (client..).step_by(N_CLIENTS) {
        ticks.tick().await;
        if *stopped.borrow() {
            break;
        }
        let (name, state) = (format!("config-{}", number % N_CHANGING), (number + 1).to_string());
        let patch = Patch::Merge(json!({ "data": { "state": &state } }));
        api.patch_metadata(&name, &PatchParams::default(), &patch).await.unwrap();
        load.times.push(now());
        load.states.insert(name, state);
    }
    load
}

impl Line {
    fn read(line: &str) -> Self {
        let parts: Vec<_> = line.split(' ').collect();
        let [at, replica, what, key, _state] = parts[..] else { panic!("{line}") };
        Self { at: at.parse().unwrap(), replica: replica.into(), begins: what == "begin", key: key.into() }
    }
}

/// Returns keys whose reconcile began while another replica reconciled them.
fn overlapping_keys(journal: &[Line]) -> Vec<String> {
    let (mut busy, mut twice) = (HashMap::new(), Vec::new());
    for line in journal {
        if !line.begins {
            busy.remove(&line.key);
        } else if let Some(other) = busy.insert(&line.key, &line.replica) {
            twice.push(format!("{}: {} and {other}", line.key, line.replica));
        }
    }
    twice
}

/// Returns the replicas that reconciled, in order.
fn leaders(journal: &[Line]) -> Vec<&str> {
    let mut leaders: Vec<_> = journal.iter().map(|line| line.replica.as_str()).collect();
    leaders.dedup();
    leaders
}

/// Replaces the replicas one by one like a Deployment: the new one has to be ready before an old one is stopped. Stops
/// the leader first if it is an old one.
async fn replace(world: &RolloutWorld<'_>, program: &Path, mut old: Vec<Replica>) -> Vec<Replica> {
    let mut replaced = Vec::new();
    for (_, name) in REPLICAS {
        replaced.push(world.start(name, program).await);
        let leader = world.leader().await;
        let gone = old.iter().position(|replica| replica.name == leader).unwrap_or(0);
        world.stop(old.remove(gone)).await;
        let seen = world.journal().len();
        until("a replica works again", || async { world.journal().len() > seen + N_CHANGING }).await;
    }
    replaced
}

async fn is_replaced_one_by_one(cluster: &Cluster) {
    let program = build::programs().join("examples/deploy-replica");
    let world = RolloutWorld::new(cluster).await;
    let mut old = Vec::new();
    for (name, _) in REPLICAS {
        old.push(world.start(name, &program).await);
    }
    let begun: BTreeMap<_, _> = (0..N_CHANGING).map(|n| (format!("config-{n}"), "0".to_owned())).collect();
    until("the first leader has reconciled all objects", || async { world.states().await == begun }).await;
    let (quiet, stopped) = watch::channel(false);
    let replace = async {
        let replaced = replace(&world, &program, old).await;
        quiet.send_replace(true);
        replaced
    };
    let (load, replaced) = tokio::join!(world.load(stopped), replace);
    assert_eq!(overlapping_keys(&world.journal()), [""; 0]);
    until("the last state of every object is reconciled", || async { world.states().await == load.states }).await;
    for replica in replaced {
        world.stop(replica).await;
    }
    check(&world.journal(), &load);
    let space: Json = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": world.namespace } });
    cluster.delete(&space, "").await;
}

fn check(journal: &[Line], load: &Load) {
    let leaders = leaders(journal);
    let different: BTreeSet<_> = leaders.iter().collect();
    assert_eq!(different.len(), leaders.len(), "no replica works after the next one has begun: {leaders:?}");
    assert!(leaders.len() > 1 && leaders[0] == "a-old", "{leaders:?}");
    assert!(leaders[leaders.len() - 1].ends_with("-new"), "{leaders:?}");
    for pair in journal.windows(2).filter(|pair| pair[0].replica != pair[1].replica) {
        let (who, from, to) = (format!("{} → {}", pair[0].replica, pair[1].replica), pair[0].at, pair[1].at);
        // Measured in changes instead of time, because a slow machine also makes fewer changes.
        let missed = load.times.iter().filter(|at| (from..to).contains(*at)).count();
        let took = (to - from) / 1_000;
        eprintln!("{who}: {took} ms, {missed} changes, in caches of {N_OBJECTS} objects");
        assert!(missed < MISSED_MAX, "{who}: no replica worked for {missed} changes, {took} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_replaced_under_load_on_embedded_server() {
    is_replaced_one_by_one(&Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG: cargo xtask deployed"]
async fn replacement_under_load_on_a_real_server() {
    let cluster = Cluster::from_env("KUBECONFIG").await;
    is_replaced_one_by_one(&cluster).await;
}
