//! The write permit: no write of a former leader is in flight when the next leader starts to write.

use std::collections::HashSet;

use kctl::{
    kube::{Api, api::PostParams},
    manager::Manager,
    prelude::*,
};
use kctl_runtime::{
    manager::lease::{Elector, Leadership},
    writer::WritePermit,
};
use kctl_tests::{Fault, Faults, RequestSummary, Rng};
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::lease_candidates::{Contest, advance_seconds, config};

/// Returns a random duration of up to `max`, in whole milliseconds.
fn up_to(rng: &mut Rng, max: Duration) -> Duration {
    Duration::from_millis(rng.below(u64::try_from(max.as_millis()).unwrap() + 1))
}

/// The writers in the order in which their writes arrived.
type Arrived = Arc<Mutex<Vec<String>>>;

/// Writes whenever the permit allows it. A write arrives within its timeout plus the margin, or up to `late` after
/// that.
async fn write(identity: String, leadership: Leadership, mut rng: Rng, late: Duration, arrived: Arrived) {
    let margin = leadership.config().write_margin();
    while leadership.wait_until_leading().await {
        let Ok(guard) = leadership.permit().acquire("write").await else { return };
        let within = guard.timeout();
        // One in four writes is slow, which is the case under test.
        let slowest = if rng.below(4) == 0 { within + margin + late } else { Duration::from_secs(3) };
        sleep(up_to(&mut rng, slowest)).await;
        arrived.lock().push(identity.clone());
    }
}

/// Runs a process that restarts whenever it loses its Lease. It writes under a new name after each start.
async fn process(contest: Arc<Contest>, name: u64, faults: Faults, late: Duration, arrived: Arrived) {
    let mut writers = JoinSet::new();
    for start in 0_u64.. {
        let mut config = config(&format!("process-{name}-start-{start}"));
        config.seed = name * 1_000 + start;
        let server = contest.server.clone();
        let client = faults.client(&contest.server);
        let elector = Elector::new(client, config.clone(), Arc::new(move || server.now())).unwrap();
        for writer in 0..3 {
            let rng = Rng::new(config.seed * 10 + writer);
            let (identity, leadership) = (config.identity.clone(), elector.leadership());
            writers.spawn(write(identity, leadership, rng, late, arrived.clone()));
        }
        elector.run(std::future::pending()).await;
        sleep(Duration::from_millis(500)).await;
    }
}

/// Runs three processes for a quarter of an hour while their connections to the Lease fail. Returns the number of
/// writers that were replaced, and the number of their writes that arrived late.
async fn run(seed: u64, late: Duration) -> (usize, usize) {
    let contest = Arc::new(Contest::new());
    let arrived = Arrived::default();
    let mut rng = Rng::new(seed);
    let connections: Vec<Faults> = (0..3).map(|_| Faults::default()).collect();
    let mut processes = JoinSet::new();
    for (name, faults) in connections.iter().enumerate() {
        processes.spawn(process(contest.clone(), name as u64, faults.clone(), late, arrived.clone()));
    }
    for _ in 0..60 {
        let faults = &connections[usize::try_from(rng.below(3)).unwrap()];
        let fault = match rng.below(4) {
            0 => Fault::Break,
            1 => Fault::LoseResponse,
            2 => Fault::Delay(up_to(&mut rng, Duration::from_secs(8))),
            _ => Fault::DelayResponse(up_to(&mut rng, Duration::from_secs(8))),
        };
        faults.add(fault, |request: &RequestSummary| request.path.contains("/leases"));
        sleep(up_to(&mut rng, Duration::from_secs(20))).await;
        faults.clear();
        sleep(up_to(&mut rng, Duration::from_secs(10))).await;
    }
    let (mut before, mut n_late) = (HashSet::new(), 0);
    let arrived = arrived.lock();
    for (index, writer) in arrived.iter().enumerate() {
        if index > 0 && arrived[index - 1] != *writer {
            before.insert(&arrived[index - 1]);
        }
        n_late += usize::from(before.contains(writer));
    }
    (before.len(), n_late)
}

#[tokio::test(start_paused = true)]
async fn former_leader_never_writes_after_its_successor() {
    for seed in 0..4 {
        let (n_leaders, n_late) = run(seed, Duration::ZERO).await;
        assert!(n_leaders >= 2, "seed {seed}: only {n_leaders} changes of the leader");
        assert_eq!(n_late, 0, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn writes_beyond_the_margin_would_be_found() {
    let mut n_late_all = 0;
    for seed in 0..3 {
        n_late_all += run(seed, Duration::from_secs(15)).await.1;
    }
    assert!(n_late_all > 0);
}

#[tokio::test(start_paused = true)]
async fn write_near_the_lease_end_waits_for_renewal() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    let permit = candidate.leadership.permit();
    assert!(candidate.leadership.wait_until_leading().await);
    let within = permit.acquire("write").await.unwrap().timeout();
    assert_eq!(within, Duration::from_millis(9_750));
    candidate.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    // A write may start for 15 s, less its timeout of 9.75 s, less a margin of 1.3 s.
    for (passed, may) in [(0, true), (3_900, true), (60, false)] {
        sleep(Duration::from_millis(passed)).await;
        let acquired = timeout(Duration::from_millis(1), permit.acquire("write")).await;
        assert_eq!(acquired.is_ok(), may, "{passed} ms later");
    }
    candidate.faults.clear();
    let acquired = timeout(Duration::from_secs(3), permit.acquire("write")).await;
    assert_eq!(acquired.unwrap().unwrap().timeout(), within, "the next renewal comes within 2 s");
}

#[tokio::test(start_paused = true)]
async fn writes_without_the_lease_fail_with_the_reason() {
    let contest = Contest::new();
    let (leader, standby) = (contest.start(config("a")), contest.start(config("b")));
    advance_seconds(1).await;
    let rejected = |permit: WritePermit| async move { permit.acquire("create Pod default/x").await.unwrap_err() };
    let text = "create Pod default/x: not sent, because this process does not lead (any longer); the leader will do it";
    assert_eq!(rejected(standby.leadership.permit()).await.to_string(), text);
    let permit = leader.leadership.permit();
    assert!(permit.acquire("write").await.is_ok());
    leader.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    advance_seconds(6).await;
    let error = rejected(permit.clone()).await;
    assert_eq!(error.to_string(), text, "it waited for a renewal, in vain");
    assert!(!error.is_unknown_outcome(), "nothing was sent");
    assert!(WritePermit::always().acquire("write").await.is_ok());
}

/// The fate of the only write of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Write {
    Answered,
    /// The write starts after 10 s. The reconcile's timeout cancels it two seconds later.
    CutByTimeout,
    /// The reconcile cancels the write after two seconds.
    CutBySelect,
    /// The API server does not respond within the write's timeout of 9.75 s.
    GivenUp,
    /// The write is an Event to which the API server does not respond.
    Event,
}

/// Writes once.
#[controller(of = ConfigMap, owns = Secret, timeout = "12s", retries = 0)]
struct Once {
    write: Write,
}

impl Reconcile for Once {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let metadata = ObjectMeta { name: Some("written".into()), ..ObjectMeta::default() };
        let secrets = cx.owned::<Secret>();
        let create = async { secrets.create(Secret { metadata, ..Secret::default() }).await };
        match self.write {
            Write::Answered | Write::GivenUp => drop(create.await?),
            Write::CutByTimeout => {
                advance_seconds(10).await;
                drop(create.await?);
            }
            Write::CutBySelect => {
                let _cut = timeout(Duration::from_secs(2), create).await;
            }
            Write::Event => cx.event(Normal, "Seen", "it was seen"),
        }
        Ok(Action::await_change())
    }
}

/// Stops a leader after `stop_at` seconds. Returns the seconds after which it ended and released the Lease.
async fn hands_back(write: Write, stop_at: u64, graceful: Option<Duration>) -> (u64, Option<u64>) {
    let contest = Contest::new();
    let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    let faults = Faults::default();
    if write != Write::Answered {
        let plural = if write == Write::Event { "/events" } else { "/secrets" };
        let writes = move |request: &RequestSummary| request.method == "POST" && request.path.contains(plural);
        faults.add(Fault::Delay(Duration::from_secs(60)), writes);
    }
    let app = App::new("once").controller_with(move |_env| std::future::ready(Ok(Once { write })));
    let manager: Manager = app.manager(faults.client(&contest.server)).await.unwrap();
    let manager = manager.elect(config("a")).unwrap().graceful_timeout(graceful);
    let (stop, stopped) = oneshot::channel::<()>();
    let begun = Instant::now();
    let running = tokio::spawn(manager.run(async move { drop(stopped.await) }));
    advance_seconds(stop_at).await;
    stop.send(()).unwrap();
    let mut handed_back = None;
    while !running.is_finished() {
        let is_free = contest.lease_state().await.0.is_empty();
        handed_back = handed_back.or(is_free.then(|| begun.elapsed().as_secs()));
        sleep(Duration::from_millis(10)).await;
    }
    running.await.unwrap().unwrap();
    let ended = begun.elapsed().as_secs();
    handed_back = handed_back.or(contest.lease_state().await.0.is_empty().then_some(ended));
    (ended, handed_back)
}

#[tokio::test(start_paused = true)]
async fn lease_release_waits_for_in_flight_writes() {
    // A write may take 9.75 s, and its effect may arrive up to 1.3 s later.
    let cases = [
        (Write::Answered, 3, None, (3, Some(3))),
        (Write::CutByTimeout, 13, None, (21, Some(21))),
        (Write::CutBySelect, 3, None, (11, Some(11))),
        (Write::GivenUp, 10, None, (11, Some(11))),
        (Write::GivenUp, 12, None, (12, Some(12))),
        (Write::Event, 3, None, (11, Some(11))),
        // If the stop can't wait for a write, the Lease is not released and has to expire.
        (Write::CutByTimeout, 13, Some(Duration::from_secs(5)), (13, None)),
        (Write::CutByTimeout, 13, Some(Duration::from_secs(9)), (21, Some(21))),
        (Write::Event, 3, Some(Duration::from_secs(2)), (8, None)),
    ];
    for (write, stop_at, graceful, expected) in cases {
        assert_eq!(hands_back(write, stop_at, graceful).await, expected, "{write:?}, stopped at {stop_at}");
    }
}
