//! Kills, stops and freezes three replicas of podset on kube-apiserver at random while sets change.
//!
//! At the end, each set must have exactly its Pods, and the audit log must show one owner per key at any time
//! ([`crate::audit`]).
//!
//! | disturbance | effect |
//! |---|---|
//! | SIGKILL, and a new process seconds later | the Leases expire, and slots move |
//! | SIGTERM | the replica releases its slots |
//! | SIGSTOP for less than a Lease duration | renewals are late |
//! | SIGSTOP for longer | when the replica continues, it has lost its slots and must not write |
//!
//! kube-apiserver runs with the garbage collector but without a kubelet. Pods therefore stay pending, which is enough
//! to count them.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use kctl::kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    Failure,
    audit::{REPLICA, Verdict, check},
    process::{Program, Replica, beside, lease_times, load},
    server::{Server, resource},
};

/// The namespace of all objects and Leases.
const NAMESPACE: &str = "default";
/// Number of replicas.
const REPLICAS: usize = 3;
/// Maximum number of concurrent create requests for sets.
const CREATES_MAX: usize = 16;
/// Polling interval of the loop that disturbs replicas.
const TICK: Duration = Duration::from_millis(50);
/// Changes of sets per second.
const CHANGES_PER_SECOND: u64 = 10;
/// Time between two disturbances of a replica, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 1_000..5_000;
/// Maximum time until a killed replica is replaced, in milliseconds.
const ABSENT_MS: u64 = 5_000;
/// Maximum time after the last disturbance until every set has its Pods.
const SETTLES_WITHIN: Duration = Duration::from_secs(600);
/// Time at the end during which no object may be written.
const QUIET_FOR: Duration = Duration::from_secs(10);
/// Maximum number of violations to print.
const PRINTED_MAX: usize = 20;

/// Disturbs three replicas of podset, and checks the audit log
#[derive(clap::Args)]
pub(crate) struct ChaosOptions {
    /// The folder with the scripts `up DIR` and `down DIR` of kube-apiserver
    #[arg(long, env = "ENVTEST", default_value = "tests/envtest")]
    envtest: PathBuf,
    /// Seconds during which replicas are disturbed
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Number of sets
    #[arg(long, default_value_t = 1_000)]
    sets: usize,
    /// Pods of each set at the beginning
    #[arg(long, default_value_t = 10)]
    pods: usize,
    /// Number of slots
    #[arg(long, default_value_t = 8)]
    shards: u32,
    /// The Lease duration in seconds; the other times are those of client-go in proportion
    #[arg(long, default_value_t = 15)]
    lease_seconds: u64,
    /// Seed of the random choices: replica, disturbance and time
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the server, of logs and of the audit log
    #[arg(long, default_value = "target/chaos")]
    folder: PathBuf,
}

/// Deterministic random number generator (`SplitMix64`).
struct Rng(u64);

impl Rng {
    /// Returns a number in `0..end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Returns a random index of a non-empty list.
    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }
}

/// State of a replica.
enum ReplicaState {
    /// The process runs.
    Running(Replica),
    /// SIGSTOP was sent; the process continues at this time.
    Frozen(Replica, Instant),
    /// SIGTERM was sent, and the process has not ended yet.
    Stopping(Replica),
    /// There is no process; a new one starts at this time.
    Absent(Instant),
}

/// Number of disturbances by sort.
#[derive(Default)]
struct Counts {
    /// Replicas killed with SIGKILL.
    kills: u32,
    /// Replicas stopped with SIGTERM.
    stops: u32,
    /// Replicas frozen with SIGSTOP.
    freezes: u32,
    /// Freezes that exceeded the Lease duration.
    long_freezes: u32,
    /// Replicas that exited because they had lost their Leases.
    exits: u32,
    /// Sets that were scaled up, sets that were scaled down, and Pods that were deleted.
    grown: u32,
    shrunk: u32,
    deleted: u32,
}

/// The cluster, and the number of Pods that each set should have.
struct Cluster {
    sets: Api<DynamicObject>,
    pods: Api<DynamicObject>,
    /// Wanted number of Pods, indexed by the number of the set.
    wanted: Vec<usize>,
}

/// Runs the chaos test.
///
/// # Errors
/// At the end, a set does not have exactly its Pods, or a replica wrote for a key whose slot it did not own.
pub(crate) async fn run(options: &ChaosOptions) -> Result<(), Failure> {
    let folder = &options.folder;
    if folder.join("server").exists() {
        // Stops the server of an interrupted run.
        let _down = std::process::Command::new(options.envtest.join("down")).arg(folder.join("server")).status();
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let folder = fs::canonicalize(folder)?;
    let log = folder.join("audit.log");
    let server = Server::real(&fs::canonicalize(&options.envtest)?, &folder, Some(&log)).await?;
    let path = beside("podset")?;
    server.install(&path, &podset()).await?;
    let mut cluster = Cluster::new(&server, options);
    let mut replicas =
        Replicas::new(options, Program { path, arguments: arguments(&server, options), folder: folder.clone() });
    let (begun, before) = (Instant::now(), load());
    let sets = cluster.sets.clone();
    let (created, disturbed) = tokio::join!(create(&sets, options), replicas.disturb(options, &mut cluster));
    created?;
    disturbed?;
    replicas.restore().await?;
    let took = begun.elapsed();
    let settled = settle(&cluster, &mut replicas).await?;
    let versions = cluster.versions().await?;
    sleep(QUIET_FOR).await;
    if cluster.versions().await? != versions {
        return Err(format!("something is still written {QUIET_FOR:?} after all sets were complete").into());
    }
    replicas.stop_all().await?;
    let n_pods = cluster.wanted.iter().sum::<usize>();
    drop(server);
    print(options, &replicas.counts, n_pods, [took, settled]);
    let verdict = audit(&log, options.shards)?;
    say(&format!("Load of the machine (1 minute): {before} before, {} after.", load()));
    // A log in an unexpected format would show no violations either.
    if verdict.n_writes < n_pods || verdict.n_moves == 0 {
        return Err(format!("the audit log has too little to show anything: {verdict:?}").into());
    }
    Ok(())
}

/// Checks an audit log, and prints a summary.
///
/// # Errors
/// The log can't be read, or a replica wrote for a key whose slot it did not own.
pub(crate) fn audit(log: &Path, n_slots: u32) -> Result<Verdict, Failure> {
    let text: Vec<String> = BufReader::new(fs::File::open(log)?).lines().collect::<Result<_, _>>()?;
    let verdict = check(text.iter().map(String::as_str), "podset", n_slots);
    let Verdict { n_writes, n_keys, n_moved, n_moves, n_leases, violations } = &verdict;
    say("\n| audit log | |\n|---|---|");
    say(&format!("| writes of replicas | {n_writes}, for {n_keys} sets |"));
    say(&format!("| sets for which several replicas wrote, one after the other | {n_moved} |"));
    say(&format!("| slots that went to another replica; writes of Leases | {n_moves}; {n_leases} |"));
    say(&format!("| writes by a replica that did not own the slot | {} |", violations.len()));
    for violation in violations.iter().take(PRINTED_MAX) {
        say(&format!("\n{violation}"));
    }
    match violations.len() {
        0 => Ok(verdict),
        n => Err(format!("{n} writes by a replica that was not the owner; see {}", log.display()).into()),
    }
}

/// Returns the `ApiResource` of `PodSet`.
fn podset() -> ApiResource {
    resource("apps.example.com", "v1", "PodSet", "podsets")
}

/// Returns the command-line arguments that all replicas share.
fn arguments(server: &Server, options: &ChaosOptions) -> Vec<String> {
    let kubeconfig = server.kubeconfig.display();
    let arguments = format!(
        "--kubeconfig {kubeconfig} --namespace {NAMESPACE} --leader-election-namespace {NAMESPACE} --shards {}",
        options.shards
    );
    arguments.split(' ').map(ToOwned::to_owned).chain(lease_times(options.lease_seconds)).collect()
}

/// Creates all sets.
async fn create(sets: &Api<DynamicObject>, options: &ChaosOptions) -> Result<(), Failure> {
    let creates = (0..options.sets).map(|number| async move {
        let labels = json!({ "set": name(number) });
        let container = json!({ "name": "app", "image": "registry.example.com/app:1" });
        let set: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apps.example.com/v1",
            "kind": "PodSet",
            "metadata": { "name": name(number) },
            "spec": {
                "replicas": options.pods,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
            },
        }))?;
        sets.create(&PostParams::default(), &set).await?;
        Ok::<_, Failure>(())
    });
    futures::stream::iter(creates).buffer_unordered(CREATES_MAX).try_collect::<()>().await
}

/// Returns the name of a set.
fn name(number: usize) -> String {
    format!("set-{number}")
}

impl Cluster {
    /// Creates the clients for sets and Pods. It creates no objects.
    fn new(server: &Server, options: &ChaosOptions) -> Self {
        let client = server.client.clone();
        Self {
            sets: Api::namespaced_with(client.clone(), NAMESPACE, &podset()),
            pods: Api::namespaced_with(client, NAMESPACE, &resource("", "v1", "Pod", "pods")),
            wanted: vec![options.pods; options.sets],
        }
    }

    /// Scales a random set up or down, or deletes one of its Pods. It skips a set that does not exist yet.
    async fn change(&mut self, rng: &mut Rng, counts: &mut Counts) -> Result<(), Failure> {
        let (set, by) = (rng.index(self.wanted.len()), 1 + rng.index(4));
        let wanted = match rng.below(3) {
            0 => self.wanted[set] + by,
            1 => self.wanted[set].saturating_sub(by),
            _ => {
                let of_set = ListParams::default().labels(&format!("set={}", name(set))).limit(1);
                if let Some(pod) = self.pods.list(&of_set).await?.items.into_iter().next() {
                    let gone = self.pods.delete(&pod.metadata.name.unwrap_or_default(), &DeleteParams::default()).await;
                    counts.deleted += u32::from(found(gone)?.is_some());
                }
                return Ok(());
            }
        };
        let patch = Patch::Merge(json!({ "spec": { "replicas": wanted } }));
        if found(self.sets.patch(&name(set), &PatchParams::default(), &patch).await)?.is_some() {
            let grows = wanted > self.wanted[set];
            counts.grown += u32::from(grows);
            counts.shrunk += u32::from(wanted < self.wanted[set]);
            self.wanted[set] = wanted;
        }
        Ok(())
    }

    /// Returns one message per problem with a set or a Pod.
    ///
    /// A set is right if it has exactly the wanted number of Pods that are not being deleted, and if its status is
    /// about its newest generation. A Pod without a set is also a problem.
    async fn wrong(&self) -> Result<Vec<String>, Failure> {
        let all = ListParams::default();
        let (sets, pods) = (self.sets.list(&all).await?.items, self.pods.list(&all).await?.items);
        let mut of: BTreeMap<String, usize> = BTreeMap::new();
        let mut wrong = Vec::new();
        for pod in &pods {
            let owners = pod.metadata.owner_references.iter().flatten();
            match owners.into_iter().find(|owner| owner.controller == Some(true)) {
                Some(owner) if pod.metadata.deletion_timestamp.is_none() => {
                    *of.entry(owner.uid.clone()).or_default() += 1;
                }
                _ => wrong.push(format!(
                    "Pod {} has no set or is being deleted",
                    pod.metadata.name.clone().unwrap_or_default()
                )),
            }
        }
        for set in &sets {
            let name = set.metadata.name.clone().unwrap_or_default();
            let number =
                name.strip_prefix("set-").and_then(|number| number.parse::<usize>().ok()).unwrap_or(usize::MAX);
            let wanted = self.wanted.get(number).copied().unwrap_or_default();
            let has = of.remove(&set.metadata.uid.clone().unwrap_or_default()).unwrap_or_default();
            let status = &set.data["status"];
            let is_current = status["observedGeneration"].as_i64() == set.metadata.generation;
            if has != wanted || set.data["spec"]["replicas"] != wanted || status["replicas"] != wanted || !is_current {
                wrong.push(format!("{name} wants {wanted}, has {has}, and its status is {status}"));
            }
        }
        if sets.len() != self.wanted.len() || !of.is_empty() {
            wrong.push(format!("{} of {} sets exist, and {} others own Pods", sets.len(), self.wanted.len(), of.len()));
        }
        Ok(wrong)
    }

    /// Returns the `resourceVersion` of every object by uid. Two equal results mean that nothing was written in
    /// between.
    async fn versions(&self) -> Result<BTreeMap<Option<String>, Option<String>>, Failure> {
        let all = ListParams::default();
        let (sets, pods) = (self.sets.list(&all).await?.items, self.pods.list(&all).await?.items);
        let metas = sets.into_iter().chain(pods).map(|object| object.metadata);
        Ok(metas.map(|meta| (meta.uid, meta.resource_version)).collect())
    }
}

/// Returns `None` if an object does not exist.
fn found<T>(answer: kctl::kube::Result<T>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kctl::kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits until every set is complete, and returns how long that took.
///
/// # Errors
/// [`SETTLES_WITHIN`] has passed. The error lists the first ten problems.
async fn settle(cluster: &Cluster, replicas: &mut Replicas) -> Result<Duration, Failure> {
    let begun = Instant::now();
    loop {
        let wrong = cluster.wrong().await?;
        if wrong.is_empty() {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > SETTLES_WITHIN {
            return Err(format!("{} wrong, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]).into());
        }
        replicas.look()?;
        sleep(Duration::from_secs(1)).await;
    }
}

/// The replicas and their random disturbances.
struct Replicas {
    program: Program,
    /// The states of the [`REPLICAS`] replicas.
    states: Vec<ReplicaState>,
    /// Decides which replica is disturbed, how, and for how long.
    rng: Rng,
    counts: Counts,
    /// The number of the last process. The user name contains it, so that the audit log distinguishes all processes.
    n_started: usize,
    /// The Lease duration.
    lease: Duration,
}

impl Replicas {
    /// Prepares the replicas; the first [`look`](Self::look) starts them.
    fn new(options: &ChaosOptions, program: Program) -> Self {
        let lease = Duration::from_secs(options.lease_seconds);
        let states = (0..REPLICAS).map(|_| ReplicaState::Absent(Instant::now())).collect();
        Self { program, states, rng: Rng(options.seed), counts: Counts::default(), n_started: 0, lease }
    }

    /// Disturbs replicas and changes sets until the time is over.
    ///
    /// Changes use a separate random number generator. So the same replicas are disturbed on a slow and on a fast
    /// server.
    async fn disturb(&mut self, options: &ChaosOptions, cluster: &mut Cluster) -> Result<(), Failure> {
        let (mut rng, begun) = (Rng(options.seed.wrapping_add(1)), Instant::now());
        let ends = begun + Duration::from_secs(options.seconds);
        let (mut next, mut n_changes, mut printed) = (begun + Duration::from_secs(5), 0, 0);
        while Instant::now() < ends {
            self.look()?;
            if Instant::now() >= next {
                self.disturb_one()?;
                let pause = PAUSE_MS.start + self.rng.below(PAUSE_MS.end - PAUSE_MS.start);
                next = Instant::now() + Duration::from_millis(pause);
            }
            // One change per iteration: on a slow server, changes must not delay the disturbances.
            if n_changes < begun.elapsed().as_secs() * CHANGES_PER_SECOND {
                cluster.change(&mut rng, &mut self.counts).await?;
                n_changes += 1;
            }
            if begun.elapsed().as_secs() >= printed + 30 {
                printed = begun.elapsed().as_secs();
                let Counts { kills, stops, freezes, exits, .. } = self.counts;
                eprintln!("{printed:>4} s: {kills} kills, {stops} stops, {freezes} freezes, {exits} exits");
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Kills, stops or freezes a random replica. It does nothing if that replica is not running.
    fn disturb_one(&mut self) -> Result<(), Failure> {
        let index = self.rng.index(REPLICAS);
        let how = self.rng.below(3);
        let state = std::mem::replace(&mut self.states[index], ReplicaState::Absent(Instant::now()));
        let ReplicaState::Running(replica) = state else {
            self.states[index] = state;
            return Ok(());
        };
        self.states[index] = match how {
            0 => {
                self.counts.kills += 1;
                drop(replica);
                ReplicaState::Absent(Instant::now() + Duration::from_millis(self.rng.below(ABSENT_MS)))
            }
            1 => {
                self.counts.stops += 1;
                replica.signal("TERM")?;
                ReplicaState::Stopping(replica)
            }
            _ => {
                // Between zero and twice the Lease duration.
                let lease = u64::try_from(self.lease.as_millis())?;
                let frozen = Duration::from_millis(self.rng.below(2 * lease));
                self.counts.freezes += 1;
                self.counts.long_freezes += u32::from(frozen > self.lease);
                replica.signal("STOP")?;
                ReplicaState::Frozen(replica, Instant::now() + frozen)
            }
        };
        Ok(())
    }

    /// Continues frozen replicas and starts absent replicas that are due.
    fn look(&mut self) -> Result<(), Failure> {
        for state in &mut self.states {
            let now = Instant::now();
            let has_ended = match state {
                ReplicaState::Running(replica) | ReplicaState::Stopping(replica) => replica.has_ended()?,
                ReplicaState::Frozen(..) | ReplicaState::Absent(_) => false,
            };
            let next = match state {
                ReplicaState::Absent(until) if now >= *until => {
                    self.n_started += 1;
                    ReplicaState::Running(Replica::start(&self.program, &format!("{REPLICA}{}", self.n_started))?)
                }
                ReplicaState::Frozen(replica, until) if now >= *until => {
                    replica.signal("CONT")?;
                    let ReplicaState::Frozen(replica, _) = std::mem::replace(state, ReplicaState::Absent(now)) else {
                        continue;
                    };
                    ReplicaState::Running(replica)
                }
                ReplicaState::Stopping(_) if has_ended => ReplicaState::Absent(now),
                ReplicaState::Running(_) if has_ended => {
                    self.counts.exits += 1;
                    ReplicaState::Absent(now)
                }
                _ => continue,
            };
            *state = next;
        }
        Ok(())
    }

    /// Waits until all replicas run again.
    async fn restore(&mut self) -> Result<(), Failure> {
        while !self.states.iter().all(|state| matches!(state, ReplicaState::Running(_))) {
            self.look()?;
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Stops the replicas one after another, so that the remaining replicas take over the released slots.
    async fn stop_all(&mut self) -> Result<(), Failure> {
        for state in std::mem::take(&mut self.states) {
            if let ReplicaState::Running(mut replica) = state {
                replica.signal("TERM")?;
                replica.ended().await?;
            }
        }
        Ok(())
    }
}

/// Prints a summary of the run.
fn print(options: &ChaosOptions, counts: &Counts, n_pods: usize, [took, settled]: [Duration; 2]) {
    let Counts { kills, stops, freezes, long_freezes, exits, grown, shrunk, deleted } = counts;
    let ChaosOptions { sets, shards, lease_seconds, seed, .. } = options;
    say(&format!(
        "{sets} sets with {n_pods} Pods, {shards} slots, {REPLICAS} replicas, Leases of {lease_seconds} s, seed {seed}"
    ));
    say("\n| chaos | |\n|---|---|");
    say(&format!("| time | {} s; all sets complete {} s later |", took.as_secs(), settled.as_secs()));
    say(&format!("| replicas killed, stopped, frozen | {kills}, {stops}, {freezes} |"));
    say(&format!("| … frozen for longer than a Lease | {long_freezes} |"));
    say(&format!("| replicas that ended by themselves | {exits} |"));
    say(&format!("| sets grown, shrunk; Pods deleted | {grown}, {shrunk}; {deleted} |"));
}

/// Prints a line of the result.
#[expect(clippy::print_stdout, reason = "the result of the program")]
fn say(line: &str) {
    println!("{line}");
}
