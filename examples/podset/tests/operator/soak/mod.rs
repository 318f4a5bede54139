//! The soak test: many sets on a real API server while the operator is killed repeatedly and the API server crashes.
//!
//! `cargo xtask soak` starts the API server and runs it, and so does a workflow each week. For a server of your own, set
//! `KUBECONFIG` and `KCTL_CRASH_API_SERVER`, the command that crashes the API server and starts it again:
//! `cargo test --release -p podset --test operator soak:: -- --ignored --nocapture`.
//! `KCTL_SOAK_SETS`, `KCTL_SOAK_PODS`, `KCTL_SOAK_SECONDS` and `KCTL_SOAK_SEED` default to 1,000, 10,000, 300 and 1. If
//! `KCTL_PROGRAM` names a `kctl` program, its `kctl kubelet` runs the pods. Otherwise the test runs a simulated kubelet
//! itself.

mod ledger;
mod operator;
mod server;

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures::StreamExt;
use kctl::{apiserver::Kubelet, kube::Client, prelude::*};
use tokio::time::Instant;

use self::{operator::Operator, server::Server};

/// Lifetime of an operator process before it is killed, in milliseconds.
const LIFE: std::ops::Range<u64> = 10_000..15_000;
/// Number of API server crashes, evenly distributed over the run.
const CRASHES: u32 = 2;
/// Maximum time after the last kill until every set is settled.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(600);
/// Time at the end during which no object may be written.
const QUIET_DURATION: Duration = Duration::from_secs(15);
/// Interval between two changes of sets.
const CHANGE_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of concurrent create requests for sets.
const CREATES_MAX: usize = 16;

/// The size and the duration of the soak test.
struct Size {
    sets: usize,
    pods: usize,
    time: Duration,
    seed: u64,
}

impl Size {
    fn from_env() -> Self {
        let number = |name: &str, default: u64| {
            std::env::var(name)
                .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
        };
        Self {
            sets: number("KCTL_SOAK_SETS", 1_000).try_into().unwrap(),
            pods: number("KCTL_SOAK_PODS", 10_000).try_into().unwrap(),
            time: Duration::from_secs(number("KCTL_SOAK_SECONDS", 300)),
            seed: number("KCTL_SOAK_SEED", 1),
        }
    }
}

/// Deterministic random number generator (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// `kctl kubelet` as a separate process, or the simulated kubelet in the process of the test.
enum PodRunner {
    Program(Child),
    Task(tokio::task::JoinHandle<()>),
}

impl PodRunner {
    fn start(client: Client) -> Self {
        match std::env::var_os("KCTL_PROGRAM") {
            Some(program) => {
                let kubeconfig = std::env::var_os("KUBECONFIG").expect("KUBECONFIG names the cluster of the soak test");
                let mut command = Command::new(program);
                command.args(["kubelet", "--node", "soak", "--kubeconfig"]).arg(kubeconfig);
                Self::Program(command.stderr(Stdio::null()).spawn().unwrap())
            }
            None => Self::Task(tokio::spawn(Kubelet::new(client, "soak").run())),
        }
    }
}

impl Drop for PodRunner {
    fn drop(&mut self) {
        match self {
            Self::Program(child) => child.kill().and_then(|()| child.wait()).map(drop).unwrap(),
            Self::Task(task) => task.abort(),
        }
    }
}

async fn create_sets(server: &Server, size: &Size) {
    let creates = (0..size.sets).map(|n| {
        // The first sets get the remainder.
        let replicas = size.pods / size.sets + usize::from(n < size.pods % size.sets);
        async move { server.create_set(&format!("set-{n}"), replicas).await }
    });
    futures::stream::iter(creates).buffer_unordered(CREATES_MAX).collect::<()>().await;
}

/// Number of disturbances of each sort.
#[derive(Debug, Default)]
struct Disturbed {
    n_grown: u32,
    n_shrunk: u32,
    n_pods_deleted: u32,
}

/// Scales settled sets up and down, and deletes some of their pods.
async fn disturb(server: Server, mut numbers: Numbers, n_sets: usize, until: Instant) -> Disturbed {
    let mut disturbed = Disturbed::default();
    while Instant::now() < until {
        tokio::time::sleep(CHANGE_INTERVAL).await;
        let name = format!("set-{}", numbers.below(n_sets as u64));
        let Some(wanted) = server.ledger.lock().unwrap().at_rest(&name) else { continue };
        let by = 1 + usize::try_from(numbers.below(4)).unwrap();
        match numbers.below(3) {
            0 => {
                server.ledger.lock().unwrap().grows(&name, wanted + by);
                server.scale(&name, wanted + by).await;
                disturbed.n_grown += 1;
            }
            1 => {
                let smaller = wanted.saturating_sub(by);
                server.scale(&name, smaller).await;
                server.ledger.lock().unwrap().has_to_shrink(&name, smaller);
                disturbed.n_shrunk += u32::from(smaller < wanted);
            }
            _ => {
                let doomed = server.ledger.lock().unwrap().take_one(&name);
                if let Some((pod, uid)) = doomed {
                    server.delete_pod(&pod, &uid).await;
                    disturbed.n_pods_deleted += 1;
                }
            }
        }
    }
    disturbed
}

/// Fails if a sort of disturbance did not happen, because such a run proves nothing.
fn assert_all_was_done(size: &Size, chaos: &Chaos, disturbed: &Disturbed) {
    assert_eq!(chaos.n_crashes, CRASHES, "the API server did not crash as often as it should");
    let kills_min = size.time.as_millis() / u128::from(LIFE.end) / 2;
    assert!(u128::from(chaos.n_kills) >= kills_min.max(1), "{} kills are too few", chaos.n_kills);
    let Disturbed { n_grown, n_shrunk, n_pods_deleted } = disturbed;
    assert!(*n_grown > 0 && *n_shrunk > 0 && *n_pods_deleted > 0, "not all was done to the sets: {disturbed:?}");
}

/// Number of operator kills and API server crashes.
struct Chaos {
    n_kills: u32,
    n_crashes: u32,
}

/// Kills operators and crashes the API server until the time is over. The last operator keeps running.
async fn kill_and_crash(size: &Size, server: &Server, numbers: &mut Numbers) -> (Operator, Chaos) {
    let begun = Instant::now();
    let (mut n_kills, mut n_crashes) = (0, 0);
    loop {
        let mut operator = Operator::start(&server.namespace);
        let life = Duration::from_millis(LIFE.start + numbers.below(LIFE.end - LIFE.start));
        let ends = Instant::now() + life;
        while Instant::now() < ends {
            if n_crashes < CRASHES && begun.elapsed() > size.time * (n_crashes + 1) / (CRASHES + 1) {
                server::crash().await;
                n_crashes += 1;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            operator.must_run();
        }
        let (n_live, n_events) = {
            let ledger = server.ledger.lock().unwrap();
            (ledger.n_live(), ledger.n_events)
        };
        eprintln!("{:>4} s: {n_live} pods are alive, {n_events} events seen", begun.elapsed().as_secs());
        if begun.elapsed() >= size.time {
            return (operator, Chaos { n_kills, n_crashes });
        }
        eprintln!("        killed with {} MB at most", operator.kill());
        n_kills += 1;
    }
}

/// Returns one message per problem with a set or a pod.
async fn wrong(server: &Server) -> Vec<String> {
    let wanted = server.ledger.lock().unwrap().desired_pods();
    let (sets, pods) = (server.all_sets().await, server.all_pods().await);
    let names: BTreeMap<_, _> = sets.iter().map(|set| (set.uid().unwrap_or_default(), set.name_any())).collect();
    let mut of: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for pod in &pods {
        if pod.metadata.deletion_timestamp.is_some() {
            wrong.push(format!("pod {} is still being deleted", pod.name_any()));
        }
        let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
        match owner.and_then(|owner| names.get(&owner.uid)) {
            Some(set) => *of.entry(set.clone()).or_default() += 1,
            None => wrong.push(format!("pod {} has no set", pod.name_any())),
        }
    }
    for set in &sets {
        let (name, status) = (set.name_any(), set.status.clone().unwrap_or_default());
        let n = i32::try_from(wanted.get(&name).copied().unwrap_or_default()).unwrap();
        let has = i32::try_from(of.get(&name).copied().unwrap_or_default()).unwrap();
        let reported =
            (status.replicas, status.ready_replicas, Some(status.observed_generation), status.conditions.len());
        if (set.spec.replicas, has) != (n, n) || reported != (n, n, set.metadata.generation, 0) {
            wrong.push(format!("set {name} wants {n}, has {has}, and says {status:?}"));
        }
    }
    if sets.len() != wanted.len() {
        wrong.push(format!("{} sets where there should be {}", sets.len(), wanted.len()));
    }
    let n_wanted = wanted.values().sum::<usize>();
    let n_live = server.ledger.lock().unwrap().n_live();
    if pods.len() != n_wanted || n_live != n_wanted {
        wrong.push(format!(
            "{} pods, {n_live} of them reported by the watch, where there should be {n_wanted}",
            pods.len()
        ));
    }
    wrong
}

/// Waits until there is no problem, and returns how long that took.
async fn wait_until_complete(server: &Server) -> Duration {
    let begun = Instant::now();
    loop {
        let rests = server.ledger.lock().unwrap().all_rest();
        let wrong = if rests { wrong(server).await } else { vec!["sets have not the pods that they want".into()] };
        if wrong.is_empty() {
            return begun.elapsed();
        }
        assert!(
            begun.elapsed() < COMPLETE_TIMEOUT,
            "{} wrong, such as {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(10)]
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs each week: cargo xtask soak"]
async fn sets_keep_their_pods_through_repeated_crashes() {
    let size = Size::from_env();
    let mut numbers = Numbers(size.seed);
    let server = Server::prepare().await;
    let kubelet = PodRunner::start(server.client.clone());
    let watching = tokio::spawn(server.clone().watch());
    let begun = Instant::now();
    let creating = tokio::spawn({
        let (server, size) = (server.clone(), Size::from_env());
        async move { create_sets(&server, &size).await }
    });
    let disturbing = tokio::spawn(disturb(server.clone(), Numbers(size.seed + 1), size.sets, begun + size.time));
    let (operator, ended) = kill_and_crash(&size, &server, &mut numbers).await;
    creating.await.unwrap();
    assert_all_was_done(&size, &ended, &disturbing.await.unwrap());
    let chaos = begun.elapsed();
    let settled = wait_until_complete(&server).await;
    assert_eq!(server.all_sets().await.len(), size.sets, "not every set was made");
    let versions = server.versions().await;
    tokio::time::sleep(QUIET_DURATION).await;
    assert_eq!(server.versions().await, versions, "something is still written");
    assert_eq!(wrong(&server).await, [""; 0]);
    watching.abort();
    let ledger = server.ledger.lock().unwrap();
    eprintln!(
        "{} sets, {} pods alive, {} created, {} events checked, {} gaps, {} kills in {} s, settled {} s later, {} MB at most",
        size.sets,
        ledger.n_live(),
        ledger.n_pods,
        ledger.n_events,
        ledger.n_gaps,
        ended.n_kills,
        chaos.as_secs(),
        settled.as_secs(),
        operator.kill()
    );
    assert_eq!(ledger.violations(), [""; 0], "never a pod too many");
    drop(kubelet);
}
