//! Kills, stops and freezes three replicas of podset on kube-apiserver at random while sets change.
//!
//! `--shard-by namespace` and `namespace-range` spread the sets over several namespaces. For ranges kube-apiserver has
//! the feature gate `ShardedListAndWatch`, and the run fails if no replica logs how the objects are selected. kube-apiserver
//! 1.37 selects built-in kinds alone, so the replicas select the sets.
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
//! kube-apiserver runs with the garbage collector but without a kubelet. Pods therefore remain pending, which is enough
//! to count them.

mod sets;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use self::sets::{Cluster, Namespaces, podset};
use crate::{
    Failure,
    audit::{POLICY, REPLICA, Verdict, check},
    division::{Division, splitmix64},
    process::{Program, Replica, lease_times, load, sibling_program},
    server::Server,
};

/// The namespace of the Leases, and of the sets unless they spread over several.
const NAMESPACE: &str = "default";
/// Number of namespaces over which sets spread if these decide the slots, unless an option sets another.
const SPREAD_OVER: usize = 24;
/// The text that a replica logs when the API server selects the objects of its slots, and the one when it does not.
const SELECTED: [&str; 2] = ["the API server selects the objects", "the API server ignores shardSelector"];
/// Number of replicas.
const REPLICAS: usize = 3;
/// Polling interval of the loop that disturbs replicas.
const TICK: Duration = Duration::from_millis(50);
/// Changes of sets per second.
const CHANGES_PER_SECOND: u64 = 10;
/// Time between two disturbances of a replica, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 1_000..5_000;
/// Maximum time until a killed replica is replaced, in milliseconds.
const ABSENT_MS: u64 = 5_000;
/// Maximum time after the last disturbance until every set has its Pods.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(600);
/// Time at the end during which no object may be written.
const QUIET_DURATION: Duration = Duration::from_secs(10);
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
    /// The part of a key that decides its slot; ranges need Kubernetes 1.36 or later
    #[arg(long, value_enum, default_value_t = Division::Object)]
    shard_by: Division,
    /// Number of namespaces of the sets [default: 1, and 24 if namespaces decide the slots]
    #[arg(long)]
    namespaces: Option<usize>,
    /// The Lease duration in seconds; the other times are client-go's in proportion
    #[arg(long, default_value_t = 15)]
    lease_seconds: u64,
    /// Seed of the random choices: replica, disturbance and time
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the server, of logs and of the audit log
    #[arg(long, default_value = "target/chaos")]
    folder: PathBuf,
}

impl ChaosOptions {
    fn n_namespaces(&self) -> usize {
        let usual = if self.shard_by == Division::Object { 1 } else { SPREAD_OVER };
        self.namespaces.unwrap_or(usual).max(1)
    }
}

/// Deterministic random number generator (`SplitMix64`).
struct Rng(u64);

impl Rng {
    /// Returns a number in `0..end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        splitmix64(self.0) % end
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
    /// Pods that a killed delete had left terminating.
    collected: u32,
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
    let flags = server_flags(&log, options.shard_by)?;
    let server = Server::real(&fs::canonicalize(&options.envtest)?, &folder, Some(&flags)).await?;
    let program = program(&server, options, &folder)?;
    server.install(&program.path, &podset()).await?;
    let namespaces = Namespaces::create(&server, options.n_namespaces()).await?;
    let mut cluster = Cluster::new(&server, namespaces.clone(), options);
    let mut replicas = Replicas::new(options, program);
    let (begun, before) = (Instant::now(), load());
    let (created, disturbed) = tokio::join!(namespaces.create_sets(options), replicas.disturb(options, &mut cluster));
    created?;
    disturbed?;
    replicas.restore().await?;
    let took = begun.elapsed();
    let settled = wait_until_complete(&cluster, &mut replicas).await?;
    let versions = cluster.versions().await?;
    sleep(QUIET_DURATION).await;
    if cluster.versions().await? != versions {
        return Err(format!("something is still written {QUIET_DURATION:?} after all sets were complete").into());
    }
    replicas.stop_all().await?;
    let n_pods = cluster.wanted.iter().sum::<usize>();
    drop(server);
    print(options, &replicas.counts, n_pods, [took, settled]);
    let verdict = audit(&log, options.shards, options.shard_by)?;
    if options.shard_by == Division::NamespaceRange {
        check_selection(&folder)?;
    }
    print_line(&format!("Load of the machine (1 minute): {before} before, {} after.", load()));
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
pub(crate) fn audit(log: &Path, n_slots: u32, division: Division) -> Result<Verdict, Failure> {
    let text: Vec<String> = BufReader::new(fs::File::open(log)?).lines().collect::<Result<_, _>>()?;
    let verdict = check(text.iter().map(String::as_str), "podset", n_slots, division);
    let Verdict { n_writes, n_keys, n_moved, n_moves, n_leases, violations } = &verdict;
    print_line("\n| audit log | |\n|---|---|");
    print_line(&format!("| writes of replicas | {n_writes}, for {n_keys} sets |"));
    print_line(&format!("| sets for which several replicas wrote, one after the other | {n_moved} |"));
    print_line(&format!("| slots that went to another replica; writes of Leases | {n_moves}; {n_leases} |"));
    print_line(&format!("| writes by a replica that did not own the slot | {} |", violations.len()));
    for violation in violations.iter().take(PRINTED_MAX) {
        print_line(&format!("\n{violation}"));
    }
    match violations.len() {
        0 => Ok(verdict),
        n => Err(format!("{n} writes by a replica that was not the owner; see {}", log.display()).into()),
    }
}

/// Prints by the logs of the replicas who selected their objects.
///
/// # Errors
/// A log can't be read, or no replica logged whether the API server selects its objects.
fn check_selection(folder: &Path) -> Result<(), Failure> {
    let mut n_logs = [0; 2];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_log && name.starts_with(REPLICA) {
            let text = fs::read_to_string(&path)?;
            for (n, logged) in n_logs.iter_mut().zip(SELECTED) {
                *n += u32::from(text.contains(logged));
            }
        }
    }
    match n_logs {
        [0, 0] => Err("no replica logged whether the API server selects its objects".into()),
        [by_server, by_replica] => {
            print_line(&format!(
                "| replicas whose objects the API server selected, ignored | {by_server}, {by_replica} |"
            ));
            Ok(())
        }
    }
}

/// Returns the flags of kube-apiserver for the audit log, with the feature gate of `shardSelector` if the replicas send it.
fn server_flags(log: &Path, by: Division) -> Result<String, Failure> {
    let policy = log.with_extension("policy.yaml");
    fs::write(&policy, POLICY)?;
    let (policy, log) = (policy.display(), log.display());
    let gate = if by == Division::NamespaceRange { " --feature-gates=ShardedListAndWatch=true" } else { "" };
    // A large size disables log rotation, because the check reads the whole log.
    Ok(format!("--audit-policy-file={policy} --audit-log-path={log} --audit-log-maxsize=100000{gate}"))
}

/// Returns the program with the command line and the environment that all replicas share.
fn program(server: &Server, options: &ChaosOptions, folder: &Path) -> Result<Program, Failure> {
    let kubeconfig = server.kubeconfig.display();
    let watched = if options.n_namespaces() == 1 { format!("--namespace {NAMESPACE}") } else { String::new() };
    let arguments = format!(
        "--kubeconfig {kubeconfig} {watched} --leader-election-namespace {NAMESPACE} --shards {}",
        options.shards
    );
    let arguments = arguments.split_ascii_whitespace().map(ToOwned::to_owned);
    let arguments = arguments.chain(lease_times(options.lease_seconds)).collect();
    let variables = vec![("BENCH_SHARD_BY", options.shard_by.name())];
    Ok(Program { path: sibling_program("shards-podset")?, folder: folder.into(), arguments, variables })
}

/// Waits until every set is complete, and returns how long that took. Adds the Pods that killed deletes left behind to the
/// counts.
///
/// # Errors
/// [`COMPLETE_TIMEOUT`] has passed. The error lists the first ten problems.
async fn wait_until_complete(cluster: &Cluster, replicas: &mut Replicas) -> Result<Duration, Failure> {
    let begun = Instant::now();
    loop {
        replicas.counts.collected += cluster.collect_terminating().await?;
        let wrong = cluster.problems().await?;
        if wrong.is_empty() {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > COMPLETE_TIMEOUT {
            return Err(format!("{} wrong, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]).into());
        }
        replicas.restart_due()?;
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
    /// Prepares the replicas; the first [`restart_due`](Self::restart_due) starts them.
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
            self.restart_due()?;
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
    fn restart_due(&mut self) -> Result<(), Failure> {
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
            self.restart_due()?;
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Stops the replicas one after another, so that the remaining replicas take over the released slots.
    async fn stop_all(&mut self) -> Result<(), Failure> {
        for state in std::mem::take(&mut self.states) {
            if let ReplicaState::Running(mut replica) = state {
                replica.signal("TERM")?;
                replica.wait_for_exit().await?;
            }
        }
        Ok(())
    }
}

/// Prints a summary of the run.
fn print(options: &ChaosOptions, counts: &Counts, n_pods: usize, [took, settled]: [Duration; 2]) {
    let Counts { kills, stops, freezes, long_freezes, exits, grown, shrunk, deleted, collected } = counts;
    let ChaosOptions { sets, shards, lease_seconds, seed, .. } = options;
    let (by, n_namespaces) = (options.shard_by.name(), options.n_namespaces());
    print_line(&format!(
        "{sets} sets with {n_pods} Pods in {n_namespaces} namespaces, {shards} slots by {by}, {REPLICAS} replicas, Leases of \
         {lease_seconds} s, seed {seed}"
    ));
    print_line("\n| chaos | |\n|---|---|");
    print_line(&format!("| time | {} s; all sets complete {} s later |", took.as_secs(), settled.as_secs()));
    print_line(&format!("| replicas killed, stopped, frozen | {kills}, {stops}, {freezes} |"));
    print_line(&format!("| … frozen for longer than a Lease | {long_freezes} |"));
    print_line(&format!("| replicas that ended by themselves | {exits} |"));
    print_line(&format!("| sets grown, shrunk; Pods deleted | {grown}, {shrunk}; {deleted} |"));
    print_line(&format!("| Pods that a killed delete left terminating | {collected} |"));
}

/// Prints a line of the result.
#[expect(clippy::print_stdout, reason = "the result of the program")]
fn print_line(line: &str) {
    println!("{line}");
}
