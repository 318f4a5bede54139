//! A client-go candidate and kctl candidates contend for one Lease: they must never hold it at the same time.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::jiff::Timestamp;
use kctl::{
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
        config::{Config, KubeConfigOptions, Kubeconfig},
    },
    manager::lease::ElectionConfig,
    prelude::*,
};
use kctl_runtime::manager::lease::{Elector, Leadership};
use tokio::{sync::oneshot, time::Instant};

use super::{Folder, program, run_and_read, start_server};

/// Duration of the contest.
const LASTS: Duration = Duration::from_secs(75);
/// Time after which a kctl candidate is replaced by the next one.
const LIVES: Duration = Duration::from_secs(5);
/// Minimum number of terms of each side.
const TERMS_MIN: usize = 3;
/// Longer than the duration of the Lease plus the time in which the other side notices that it expired.
const ABSENT: Duration = Duration::from_secs(6);
/// Interval at which a candidate's leadership is recorded.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const LEASE: &str = "contended";

/// A term of one side, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    begins: i64,
    ends: i64,
    who: &'static str,
}

fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

/// Parses the terms that the Go program prints as `… leads` and `… ends`.
fn terms(output: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut began = None;
    for line in output.lines() {
        let (time, what) = line.split_once(' ').unwrap();
        let time = time.parse().unwrap();
        match what {
            "leads" => began = Some(time),
            _ => terms.push(Term { begins: began.take().unwrap(), ends: time, who: "go" }),
        }
    }
    assert_eq!(began, None, "{output}");
    terms
}

/// Returns the terms of one candidate, as its write permit reports them.
async fn watch(leadership: Leadership) -> Vec<Term> {
    let (mut terms, mut began) = (Vec::new(), None);
    let until = Instant::now() + LIVES;
    while Instant::now() < until {
        // The time is read first, so that a recorded term is never shorter than the real one.
        let (before, leads) = (now(), leadership.is_leading());
        match (leads, began) {
            (true, None) => began = Some(before),
            (false, Some(begins)) => {
                terms.push(Term { begins, ends: before, who: "kctl" });
                began = None;
            }
            _ => {}
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    terms.extend(began.map(|begins| Term { begins, ends: now(), who: "kctl" }));
    terms
}

/// Runs kctl candidates one after the other. Every third one stops without releasing the Lease.
async fn run_candidates(client: Client, namespace: String) -> Vec<Term> {
    let (mut terms, until) = (Vec::new(), Instant::now() + LASTS);
    for round in 0.. {
        if Instant::now() >= until {
            break;
        }
        let mut config = ElectionConfig::new(LEASE, &namespace, &format!("kctl-{round}"));
        config.lease_duration = Duration::from_secs(3);
        config.renew_deadline = Duration::from_secs(2);
        config.retry_period = Duration::from_millis(500);
        let elector = Elector::new(client.clone(), config, Arc::new(Timestamp::now)).unwrap();
        let leadership = elector.leadership();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(elector.run(async { stopped.await.unwrap_or(false) }));
        terms.extend(watch(leadership).await);
        if round % 3 == 2 {
            running.abort();
            // Wait until the other side has acquired the Lease. Otherwise the next candidate might acquire it.
            tokio::time::sleep(ABSENT).await;
        } else {
            stop.send(true).unwrap();
            running.await.unwrap();
        }
    }
    terms
}

async fn never_both(kubeconfig: PathBuf) {
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let namespace = format!("contend-{}", std::process::id());
    let space = kctl::from_json(kctl::json!({ "metadata": { "name": namespace } })).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &space).await.unwrap();

    let mut go = program("election").await;
    go.arg(kubeconfig).args([&namespace, LEASE, &LASTS.as_secs().to_string()]);
    let (output, ours) = tokio::join!(run_and_read(&mut go), run_candidates(client.clone(), namespace.clone()));
    Api::<Namespace>::all(client).delete(&namespace, &DeleteParams::default()).await.unwrap();
    let theirs = terms(&output);
    eprintln!("{} terms of client-go, {} of kctl", theirs.len(), ours.len());
    assert!(theirs.len().min(ours.len()) >= TERMS_MIN, "{theirs:?} {ours:?}");
    let mut all = [theirs, ours].concat();
    all.sort();
    for pair in all.windows(2) {
        assert!(pair[0].ends <= pair[1].begins, "{pair:?} are at once, of {all:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: cargo xtask interop"]
async fn client_go_and_kctl_never_both_lead() {
    let folder = Folder::new("contend");
    let (_server, kubeconfig) = start_server(&folder).await;
    never_both(kubeconfig).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go and KUBECONFIG: cargo xtask real-server"]
async fn kctl_and_client_go_alternate_on_real_server() {
    let kubeconfig = std::env::var_os("KUBECONFIG").expect("KUBECONFIG names an API server");
    never_both(kubeconfig.into()).await;
}
