//! The write permit: no write of a leader is still on its way when the next one begins to write.

use std::{collections::HashSet, sync::Arc};

use kctl_runtime::{
    effect::WritePermit,
    manager::lease::{Elector, Leadership},
};
use kctl_tests::{Asked, Fault, Faults};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Duration, sleep, timeout},
};

use crate::contest::{Contest, config, seconds};

/// Numbers of a seed (splitmix64).
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn millis(&mut self, max: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(max.as_millis()).unwrap() + 1))
    }
}

/// Who wrote, in the order in which the writes arrived.
type Arrived = Arc<Mutex<Vec<String>>>;

/// Writes as fast as it may. A write arrives within its timeout and the margin, or `late` later than that.
async fn write(identity: String, leadership: Leadership, mut chance: Chance, late: Duration, arrived: Arrived) {
    let margin = leadership.config().write_margin();
    while leadership.led().await {
        let Ok(within) = leadership.permit().ask("write").await else { return };
        // Most writes are quick; those that are not are what this is about.
        let slowest = if chance.below(4) == 0 { within + margin + late } else { Duration::from_secs(3) };
        sleep(chance.millis(slowest)).await;
        arrived.lock().push(identity.clone());
    }
}

/// A process that is started again whenever it has lost its lease, with writes of its own each time.
async fn process(contest: Arc<Contest>, name: u64, faults: Faults, late: Duration, arrived: Arrived) {
    let mut writers = JoinSet::new();
    for start in 0_u64.. {
        let mut config = config(&format!("process-{name}-start-{start}"));
        config.seed = name * 1_000 + start;
        let server = contest.server.clone();
        let client = faults.client(&contest.server);
        let elector = Elector::new(client, config.clone(), Arc::new(move || server.now())).unwrap();
        for writer in 0..3 {
            let chance = Chance(config.seed * 10 + writer);
            let (identity, leadership) = (config.identity.clone(), elector.leadership());
            writers.spawn(write(identity, leadership, chance, late, arrived.clone()));
        }
        elector.run(std::future::pending()).await;
        sleep(Duration::from_millis(500)).await;
    }
}

/// Runs three processes for a quarter of an hour while their connections to the lease fail. Returns how many of them wrote, and how
/// many writes arrived after another one's.
async fn run(seed: u64, late: Duration) -> (usize, usize) {
    let contest = Arc::new(Contest::new());
    let arrived = Arrived::default();
    let mut chance = Chance(seed);
    let connections: Vec<Faults> = (0..3).map(|_| Faults::default()).collect();
    let mut processes = JoinSet::new();
    for (name, faults) in connections.iter().enumerate() {
        processes.spawn(process(contest.clone(), name as u64, faults.clone(), late, arrived.clone()));
    }
    for _ in 0..60 {
        let faults = &connections[usize::try_from(chance.below(3)).unwrap()];
        let fault = match chance.below(4) {
            0 => Fault::Break,
            1 => Fault::LoseAnswer,
            2 => Fault::Delay(chance.millis(Duration::from_secs(8))),
            _ => Fault::DelayAnswer(chance.millis(Duration::from_secs(8))),
        };
        faults.add(fault, |asked: &Asked| asked.path.contains("/leases"));
        sleep(chance.millis(Duration::from_secs(20))).await;
        faults.clear();
        sleep(chance.millis(Duration::from_secs(10))).await;
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
async fn no_write_of_a_leader_arrives_after_one_of_the_next() {
    for seed in 0..4 {
        let (n_leaders, n_late) = run(seed, Duration::ZERO).await;
        assert!(n_leaders >= 2, "seed {seed}: only {n_leaders} changes of the leader");
        assert_eq!(n_late, 0, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn writes_that_go_on_beyond_the_margin_are_what_the_run_would_find() {
    let mut n_late_all = 0;
    for seed in 0..3 {
        n_late_all += run(seed, Duration::from_secs(15)).await.1;
    }
    assert!(n_late_all > 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_for_a_renewal_when_too_little_is_left_of_the_lease() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    let permit = candidate.leadership.permit();
    assert!(candidate.leadership.led().await);
    let within = permit.ask("write").await.unwrap();
    assert_eq!(within, Duration::from_millis(9_750));
    candidate.faults.add(Fault::Break, |asked: &Asked| asked.path.contains("/leases"));
    // 15 s less 9.75 s less a margin of 1.3 s.
    for (passed, may) in [(0, true), (3_900, true), (60, false)] {
        sleep(Duration::from_millis(passed)).await;
        let asked = timeout(Duration::from_millis(1), permit.ask("write")).await;
        assert_eq!(asked.is_ok(), may, "{passed} ms later");
    }
    candidate.faults.clear();
    let asked = timeout(Duration::from_secs(3), permit.ask("write")).await;
    assert_eq!(asked.unwrap().unwrap(), within, "the next renewal comes within 2 s");
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_written_and_the_error_says_why() {
    let contest = Contest::new();
    let (leader, standby) = (contest.start(config("a")), contest.start(config("b")));
    seconds(1).await;
    let refused = |permit: WritePermit| async move { permit.ask("create Pod default/x").await.unwrap_err() };
    let text = "create Pod default/x: not sent, because this process does not lead (any longer); the leader will do it";
    assert_eq!(refused(standby.leadership.permit()).await.to_string(), text);
    let permit = leader.leadership.permit();
    assert!(permit.ask("write").await.is_ok());
    leader.faults.add(Fault::Break, |asked: &Asked| asked.path.contains("/leases"));
    seconds(6).await;
    let asked = refused(permit.clone()).await;
    assert_eq!(asked.to_string(), text, "it waited for a renewal, in vain");
    assert!(!asked.is_unknown_outcome(), "nothing was sent");
    assert!(WritePermit::always().ask("write").await.is_ok());
}
