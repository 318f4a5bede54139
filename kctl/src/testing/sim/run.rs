//! The phases of a run: apply the objects, take the steps, compare the final state, and delete
//! everything that users created.

mod deletion;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt;
use kctl_runtime::reconcile::{Error, Result};
use tokio::time::{Instant, sleep, sleep_until};

use self::deletion::{check_leaks, check_requests, delete_all};
use super::{
    checks::{NeedlessWrites, Violation},
    fresh_start::FinalObjects,
    leftover_tasks::find_leftover_tasks,
    normal::{self, NormalizedObject},
    own_thread::on_own_thread,
    panics,
    plan::{Fault, FaultPoints},
    progress::{self, AppLogs, Progress},
    scenario::{FailingKeys, FreshStart, Invariant, Scenario, SpawnedTasks, Stage},
    trace::Line,
    world::{Servers, World, wait_for_panic},
};
use crate::app;

/// Name of the checker that compares a final state with the final state of the run without faults.
pub(super) const SAME_STATE: &str = "the same final state";
/// The state has settled when nothing has happened for this time.
///
/// The waits of faults are shorter, such as `SKIPPED_EVENT_DELAY` and the delay of a late write. Otherwise a run would
/// compare a state that is still about to change; `faults_wait_shorter_than_the_state_settles` tests it. A longer wait
/// counts in [`World::quiet_from`], as a lapse does, or in `held_until`, as a partition does.
const QUIET_DURATION: Duration = Duration::from_secs(15);
/// A key that always fails keeps a system busy; if nothing changes for this time, the state has
/// settled anyway.
const STUCK_TIMEOUT: Duration = Duration::from_secs(600);
/// A system that still changes after this time fails the checker `the state settles`.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Maximum time within which requeues are waited for: a year. A schedule would never let a longer wait end.
const REQUEUE_TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
/// Longest simulated duration of a step, in addition to twice the time within which requeues are waited for.
const STEP_TIMEOUT: Duration = Duration::from_secs(3_600);
/// After the state has settled, nothing may be written for this time.
const STABLE_DURATION: Duration = Duration::from_secs(120);
/// The same in runs with faults and several instances, which renew Leases all the time. That is most of the cost of their
/// simulated time. It is longer than two Lease durations, so that work of a slot that moves late is seen.
const STABLE_WITH_LEASES_DURATION: Duration = Duration::from_secs(40);
/// Simulated time between two checks whether the state has settled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A run with faults may make this many changes more than [`CHANGES_FACTOR`] times the changes of the run without
/// faults.
const CHANGES_BASE: u64 = 200;
const CHANGES_FACTOR: u64 = 10;

/// The result of the run without faults, with which the others are compared.
#[derive(Clone, Default)]
pub(super) struct Reference {
    /// The final state; empty if the run has not reached it.
    pub(super) state: Vec<NormalizedObject>,
    /// The states before steps, by the number of the step. One in which something was left to do is not among them.
    pub(super) states_before: BTreeMap<usize, Arc<Vec<NormalizedObject>>>,
    /// The objects at the end, if the scenario compares them with a fresh start.
    pub(super) final_objects: FinalObjects,
    /// The number of the step before which the state was not the expected one.
    pub(super) differs_before: Option<usize>,
    pub(super) changes_by_app: u64,
}

impl Reference {
    /// Returns the state before a step, or the final one.
    pub(super) fn state_before(&self, step: Option<usize>) -> &[NormalizedObject] {
        match step {
            Some(nth) => self.states_before.get(&nth).map(|state| state.as_slice()).unwrap_or_default(),
            None => &self.state,
        }
    }
}

pub(super) struct Outcome {
    pub(super) lines: Vec<Line>,
    pub(super) found: Option<Violation>,
    /// The state once everything had settled.
    pub(super) reference: Reference,
    pub(super) points: FaultPoints,
    /// Number of injected faults, by name.
    pub(super) injected: BTreeMap<&'static str, u64>,
    /// The requests and events that the faults hit, by their index in the plan; `None` if the run was given up.
    pub(super) fault_targets: Option<BTreeMap<usize, String>>,
    pub(super) n_runs: usize,
    pub(super) n_reconciles: u64,
    /// The backtrace of the panic that the finding is about, if `RUST_BACKTRACE` asks for backtraces.
    pub(super) backtrace: Option<String>,
}

impl Outcome {
    /// Returns the outcome without what only a report reads, if the run has passed. The outcomes of all runs are kept until
    /// the last one has ended.
    pub(super) fn without_unread_parts(self) -> Self {
        match self.found {
            Some(_) => self,
            None => Self { lines: Vec::new(), reference: Reference::default(), points: FaultPoints::default(), ..self },
        }
    }
}

/// Sets up the API servers that each run gets a copy of.
///
/// Installing CRDs takes longer than most runs, so it happens once.
pub(super) fn prepare(scenario: &Scenario) -> Result<Servers> {
    let broken = |found: Violation| Error::from(format!("{}: {}", found.checker, found.message));
    let (stuck_after, scenario) = (scenario.stuck_after, scenario.clone());
    let prepared = async move { progress::tick_when_polled(Box::pin(Servers::from_scenario(&scenario))).await };
    on_own_thread(&Arc::default(), stuck_after, prepared).map_err(broken)?
}

/// Runs a scenario once. `expected` is the result of the run without faults, or `None` for that run
/// itself.
pub(super) fn run(
    scenario: &Scenario,
    servers: &Servers,
    seed: u64,
    plan: &[Fault],
    expected: Option<&Reference>,
) -> Outcome {
    run_with(AppLogs::Passed, scenario, servers, seed, plan, expected)
}

/// Runs a scenario once, as [`run`] does. `app_logs` decides where the logs of the app go.
pub(super) fn run_with(
    app_logs: AppLogs,
    scenario: &Scenario,
    servers: &Servers,
    seed: u64,
    plan: &[Fault],
    expected: Option<&Reference>,
) -> Outcome {
    let (stuck_after, scenario, servers) = (scenario.stuck_after, scenario.clone(), servers.clone());
    let (plan, expected) = (plan.to_vec(), expected.cloned());
    let progress = Arc::new(Progress::new(app_logs));
    let phases = async move { Box::pin(run_phases(&scenario, &servers, seed, &plan, expected.as_ref())).await };
    let outcome = on_own_thread(&progress, stuck_after, phases);
    outcome.unwrap_or_else(|found| Outcome { lines: progress.lines(), ..failed_outcome(found) })
}

/// Returns the outcome of a run that could not start, panicked, or was given up because it was stuck.
pub(super) fn failed_outcome(found: Violation) -> Outcome {
    Outcome {
        lines: Vec::new(),
        found: Some(found),
        reference: Reference::default(),
        points: FaultPoints::default(),
        injected: BTreeMap::new(),
        fault_targets: None,
        n_runs: 1,
        n_reconciles: 0,
        backtrace: None,
    }
}

/// Runs the phases until they end or a checker finds something, whichever comes first.
async fn run_phases(
    scenario: &Scenario,
    servers: &Servers,
    seed: u64,
    plan: &[Fault],
    expected: Option<&Reference>,
) -> Outcome {
    let mut world = match World::start(scenario, servers, seed, plan).await {
        Ok(world) => world,
        Err(error) => return failed_outcome(Violation::new("the simulation", format!("it does not start: {error}"))),
    };
    if let Some(expected) = expected {
        world.shared.checks.lock().changes_max = CHANGES_BASE + CHANGES_FACTOR * expected.changes_by_app;
    }
    let (mut reached, mut tasks) = (Reference::default(), std::mem::take(&mut world.tasks));
    let phases = AssertUnwindSafe(phases(&world, expected, &mut reached)).catch_unwind();
    let found = tokio::select! {
        biased;
        found = world.shared.wait_for_finding() => Some(found),
        found = wait_for_panic(&mut tasks) => Some(found),
        ended = phases => ended.unwrap_or_else(|panic| Err(Violation::from_panic("a step", &*panic))).err(),
        never = progress::tick_with_time() => match never {},
    };
    let points = world.points();
    let (mut injected, fault_targets) = (world.shared.faults.counts(), Some(world.shared.fault_targets.targets()));
    injected.extend(world.shared.external_counts());
    let (changes_by_app, n_reconciles) = {
        let checks = world.shared.checks.lock();
        (checks.changes_by_app, checks.n_reconciles)
    };
    let reference = Reference { changes_by_app, ..reached };
    let backtrace = found.as_ref().and_then(|found| panics::backtrace_of(&found.message));
    let lines = world.lines();
    let mut outcome =
        Outcome { lines, found, reference, points, injected, fault_targets, n_runs: 1, n_reconciles, backtrace };
    if outcome.found.is_none() && scenario.spawned_tasks == SpawnedTasks::Found {
        tasks.shutdown().await;
        world.end();
        outcome.found = find_leftover_tasks().await;
    }
    outcome
}

/// Runs the phases in the order that the module documentation gives.
async fn phases(world: &World, expected: Option<&Reference>, reached: &mut Reference) -> Result<(), Violation> {
    let scenario = &world.shared.scenario;
    let failed = |step: &str| {
        let step = step.to_owned();
        move |error: Error| Violation::new("the steps of the scenario", format!("{step}: {error}"))
    };
    world.shared.log("user", "applies the objects");
    app::apply(&world.client, &world.objects).await.map_err(failed("the objects"))?;
    let mut nth = 0;
    for stage in &scenario.stages {
        let step = match stage {
            Stage::Step(step) => step,
            Stage::Expectation(rule) => {
                wait_until_settled(world).await?;
                check_state(world, expected)?;
                check_rule(world, rule)?;
                continue;
            }
        };
        nth += 1;
        if let Some(time) = step.after {
            sleep(time).await;
        } else {
            wait_until_settled(world).await?;
            check_state(world, expected)?;
            world.shared.record_settled();
            let nth_state = StateBefore { nth, step: &step.name };
            compare_before_step(world, expected, reached, &nth_state)?;
        }
        world.shared.begin_step(nth).await;
        world.shared.log("user", &step.name);
        let within = STEP_TIMEOUT + 2 * scenario.requeues_within.min(REQUEUE_TIMEOUT_MAX);
        let action = tokio::time::timeout(within, (step.action)(world.client.clone())).await;
        action.unwrap_or_else(|_elapsed| Err(late_step(world, within))).map_err(failed(&step.name))?;
    }
    sleep_until(world.quiet_from()).await;
    world.wait_for_updates().await;
    wait_until_settled(world).await?;
    world.shared.log("checker", "the state has settled");
    check_state(world, expected)?;
    reached.state = normalized_state(world);
    if expected.is_none() && scenario.fresh_start == FreshStart::Compared {
        let checks = world.shared.checks.lock();
        reached.final_objects = FinalObjects::read(&checks.comparable_state(), &scenario.ignored, &checks.timed);
    }
    world.shared.record_settled();
    if let Some(different) = expected.and_then(|expected| compare_states(&expected.state, &reached.state)) {
        let message = different.message + &pending(world);
        return Err(Violation { message, ..different });
    }
    check_progress(world)?;
    let has_leases = scenario.instances > 1 && expected.is_some();
    check_no_more_writes(world, if has_leases { STABLE_WITH_LEASES_DURATION } else { STABLE_DURATION }).await?;
    world.shared.begin_step(nth + 1).await;
    delete_all(world).await.map_err(failed("the end of all objects"))?;
    wait_until_settled(world).await?;
    check_leaks(world)?;
    check_requests(world)
}

/// Checks a settled state by itself. With faults, the app may not be at work for a while.
fn check_state(world: &World, expected: Option<&Reference>) -> Result<(), Violation> {
    if expected.is_none() {
        check_progress(world)?;
    }
    check_settled(world)?;
    if expected.is_none() {
        check_generations(world)?;
    }
    Ok(())
}

/// Returns the state now, in the form in which states are compared.
fn normalized_state(world: &World) -> Vec<NormalizedObject> {
    let (snapshot, timed) = {
        let checks = world.shared.checks.lock();
        (checks.comparable_state(), checks.timed.clone())
    };
    normal::state(&snapshot, &world.shared.scenario.ignored, &timed)
}

/// The settled state before a step.
struct StateBefore<'a> {
    /// The number of the step.
    nth: usize,
    /// The name of the step.
    step: &'a str,
}

/// Compares the state before a step with the run without faults. The step may repair what the app has missed.
///
/// A state counts only if nothing was left to do in both runs: no requeue was pending, and no fault at a time could hold
/// something back.
fn compare_before_step(
    world: &World,
    expected: Option<&Reference>,
    reached: &mut Reference,
    StateBefore { nth, step }: &StateBefore<'_>,
) -> Result<(), Violation> {
    if !world.is_idle() || world.next_requeue().is_some() || world.is_under_fault(QUIET_DURATION) {
        return Ok(());
    }
    let state = Arc::new(normalized_state(world));
    reached.states_before.insert(*nth, state.clone());
    let expected = expected.and_then(|expected| expected.states_before.get(nth));
    let Some(different) = expected.and_then(|expected| compare_states(expected, &state)) else { return Ok(()) };
    reached.differs_before = Some(*nth);
    Err(Violation { message: format!("before step {step:?}: {}", different.message), ..different })
}

/// Returns the finding if two states differ.
fn compare_states(expected: &[NormalizedObject], found: &[NormalizedObject]) -> Option<Violation> {
    let difference = normal::difference(expected, found)?;
    let first = normal::first_object(expected, found).unwrap_or_default();
    Some(Violation::new(SAME_STATE, difference).about(first))
}

/// Returns the error of a step that does not end. It often waits for something that the app fails to do.
fn late_step(world: &World, within: Duration) -> Error {
    let details = join_details(&world.failing()) + &join_details(&world.not_at_work());
    Error::from(format!("it has not ended after {within:?} of simulated time{details}"))
}

/// Waits until the state has settled. Requeues within `waiting_for_requeues` are waited for in one
/// jump.
async fn wait_until_settled(world: &World) -> Result<(), Violation> {
    let (begun, mut quiet_since) = (Instant::now(), Instant::now());
    let (mut revision, mut changed) = (0, Instant::now());
    let within = world.shared.scenario.requeues_within.min(REQUEUE_TIMEOUT_MAX);
    let mut look = POLL_INTERVAL;
    loop {
        sleep(look).await;
        let now = Instant::now();
        let newest = world.shared.checks.lock().n_lasting_changes;
        if newest != revision {
            (revision, changed) = (newest, now);
        }
        if !world.is_idle() {
            quiet_since = now;
        }
        let quiet = now - quiet_since.max(changed) >= QUIET_DURATION;
        let next = world.next_requeue().map(|(wait, _)| wait).filter(|wait| *wait <= within);
        // Nothing happens before the next requeue, so one poll can jump to it.
        look = next.filter(|_| quiet).map_or(POLL_INTERVAL, |wait| wait.max(POLL_INTERVAL));
        let is_due = next.is_some();
        // A requeue that came due and changed nothing is not waited for again: the next one is as far away.
        let waited = now - changed >= within + QUIET_DURATION;
        if (quiet && (waited || !is_due)) || now - changed >= within + STUCK_TIMEOUT {
            return Ok(());
        }
        let after = SETTLE_TIMEOUT + 2 * within;
        if now - begun >= after {
            let last = world.shared.checks.lock().last_change.clone();
            let what =
                format!("the state still changes after {after:?}, last {last}{}", join_details(&world.failing()));
            return Err(Violation::new("the state settles", what));
        }
    }
}

/// Returns a list of what fails, for the end of a finding.
fn join_details(texts: &[String]) -> String {
    texts.iter().flat_map(|text| ["; ", text]).collect()
}

/// Checks that the app is at work, although nothing has changed for a while.
///
/// An app that does not start changes nothing: all its runs end in the same state. With faults, other checkers come
/// first, because they name the effect on the state.
fn check_progress(world: &World) -> Result<(), Violation> {
    let mut texts = world.not_at_work();
    if world.shared.scenario.failing_keys == FailingKeys::Found {
        texts.extend(world.failing());
    }
    if texts.is_empty() { Ok(()) } else { Err(Violation::new("the app works", texts.join("; "))) }
}

/// Checks that the app has written the newest generation to each status that has one.
///
/// Only the run without faults needs it: the others have to reach the same state.
fn check_generations(world: &World) -> Result<(), Violation> {
    let stale = world.stale_generations();
    if stale.is_empty() {
        return Ok(());
    }
    let help = "write the generation whenever the status is written, or leave it out with `.ignoring(\"/status/observedGeneration\")`";
    Err(Violation::new("the newest generation is observed", format!("{}; {help}{}", stale.join("; "), pending(world))))
}

fn check_settled(world: &World) -> Result<(), Violation> {
    world.shared.scenario.settled.iter().try_for_each(|rule| check_rule(world, rule))
}

/// Checks a rule about the state now.
fn check_rule(world: &World, rule: &Invariant) -> Result<(), Violation> {
    let mut snapshot = world.shared.checks.lock().snapshot.clone();
    snapshot.time = world.shared.simulated_time();
    let holds = catch_unwind(AssertUnwindSafe(|| (rule.holds)(&snapshot)));
    let holds = holds.map_err(|panic| Violation::from_panic(&format!("rule {:?}", rule.name), &*panic))?;
    holds.map_err(|message| Violation::new(&rule.name, message + &pending(world)))
}

/// Returns a hint for a report if a requeue is pending, which may be why the state is not the
/// expected one.
fn pending(world: &World) -> String {
    let Some((wait, key)) = world.next_requeue() else { return String::new() };
    format!("; {key} asked to be reconciled again in {wait:.1?}: `waiting_for_requeues` waits for what that does")
}

/// Checks that nothing is written after the state has settled, not even without effect: each write
/// costs the server a request. Rejected writes count as well, because no key fails by now.
async fn check_no_more_writes(world: &World, stable_for: Duration) -> Result<(), Violation> {
    let failing_keys = world.shared.scenario.failing_keys;
    world.shared.checks.lock().needless = Some(NeedlessWrites { failing_keys, ..NeedlessWrites::default() });
    sleep(stable_for).await;
    let needless = world.shared.checks.lock().needless.take().unwrap_or_default();
    if needless.n_writes == 0 {
        return Ok(());
    }
    let (n, first) = (needless.n_writes, needless.first.join("; "));
    let what = format!("{n} more writes within {stable_for:?} although nothing was left to do, first {first}");
    Err(Violation::new("no more writes", what))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    };

    use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
    use kctl_apiserver::faults::{EventFault, Moment, RequestFault};
    use kctl_runtime::__private_0_1::ThawOrder;
    use kube::{
        Api,
        api::{Patch, PatchParams},
    };

    use super::{
        super::plan::{Freeze, SKIPPED_EVENT_DELAY, STALE_SERVER_DURATION, TimedFault, WriteFault},
        *,
    };
    use crate::{
        prelude::{Action, App, Context, controller},
        testing::Snapshot,
    };

    /// Returns how many hours the Lease's `renewTime` is ahead of the server's clock at the end.
    fn hours_ahead(plan: &[Fault]) -> i64 {
        let seen = Arc::<AtomicI64>::default();
        let hours = seen.clone();
        let look = move |snapshot: &Snapshot| {
            let renewed = snapshot.all::<Lease>().pop().and_then(|lease| lease.spec?.renew_time);
            let made = snapshot.all::<ConfigMap>().pop().and_then(|config| config.metadata.creation_timestamp);
            if let (Some(renewed), Some(made)) = (renewed, made) {
                hours.store((renewed.0.as_second() - made.0.as_second()) / 3_600, Ordering::Relaxed);
            }
            Ok(())
        };
        let scenario = Scenario::new(|| App::new("nothing"))
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
            .instances(2)
            .settled("told", look);
        let servers = prepare(&scenario).unwrap();
        let outcome = run(&scenario, &servers, 0, plan, None);
        assert_eq!(outcome.found, None);
        seen.load(Ordering::Relaxed)
    }

    /// Reads its object from the API server.
    #[controller(crate = crate, primary(get))]
    async fn reader(_config: Arc<ConfigMap>, cx: Context<reader>) -> Result<Action> {
        cx.get().await?;
        Ok(Action::await_change())
    }

    #[test]
    fn expired_version_meets_no_get() {
        let scenario = Scenario::new(|| App::new("reader").controller::<reader>())
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        let servers = prepare(&scenario).unwrap();
        let reads = run(&scenario, &servers, 0, &[], None).points.reads;
        let what = RequestFault::Reject { code: 410, retry_after: None, moment: Moment::Before };
        // The place that a plan chose for a watch, and that is a `get` because of an earlier fault.
        for (verb, n_injected) in [("get", 0), ("watch", 1)] {
            let before = reads.iter().take_while(|read| **read != verb).count();
            let plan = [Fault::Read { nth: 1 + before as u64, what }];
            let outcome = run(&scenario, &servers, 0, &plan, None);
            assert_eq!(outcome.found, None);
            assert_eq!(outcome.injected.values().sum::<u64>(), n_injected, "{verb} of {reads:?}");
        }
    }

    /// Copies the data of its object into a label.
    #[controller(crate = crate, primary(patch))]
    async fn copies(config: Arc<ConfigMap>, cx: Context<copies>) -> Result<Action> {
        let color = config.data.as_ref().and_then(|data| data.get("color"));
        cx.patch(crate::json!({ "metadata": { "labels": { "color": color } } })).await?;
        Ok(Action::await_change())
    }

    fn red_is_copied(snapshot: &Snapshot) -> Result<(), String> {
        let labels = snapshot.all::<ConfigMap>().pop().and_then(|config| config.metadata.labels);
        let color = labels.and_then(|mut labels| labels.remove("color"));
        if color.as_deref() == Some("red") { Ok(()) } else { Err(format!("the label is {color:?}")) }
    }

    #[test]
    fn state_hidden_by_a_partition_is_not_settled() {
        let (from, length) = (Duration::from_secs(5), Duration::from_secs(60));
        // The change is made at the end of the partition, so that its event arrives long after the end.
        let changed = Duration::from_secs(64);
        let scenario = Scenario::new(|| App::new("copies").controller::<copies>())
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue}}")
            .step_at(changed, "set red", |client| async move {
                let red = Patch::Merge(crate::json!({ "data": { "color": "red" } }));
                Api::<ConfigMap>::default_namespaced(client).patch("a", &PatchParams::default(), &red).await?;
                Ok(())
            })
            .settled("red is copied", red_is_copied);
        let servers = prepare(&scenario).unwrap();
        let plan = [Fault::At { time: from, what: TimedFault::Partition { instance: 0, length } }];
        let outcome = run(&scenario, &servers, 0, &plan, None);
        assert_eq!(outcome.found, None);
        assert_eq!(outcome.injected.get("events held"), Some(&1), "{:?}", outcome.injected);
    }

    #[test]
    fn longest_wait_and_most_requests_are_allowed() {
        let scenario = Scenario::new(|| App::new("copies").controller::<copies>())
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red}}")
            .waiting_for_requeues(Duration::MAX)
            .requests_per_change(u64::MAX);
        let outcome = run(&scenario, &prepare(&scenario).unwrap(), 0, &[], None);
        assert_eq!(outcome.found, None);
    }

    /// Returns how long a fault holds back what would change the state.
    fn delay_of(fault: &Fault) -> Duration {
        match fault {
            Fault::Write { what: WriteFault::Fails(fault), .. } | Fault::Read { what: fault, .. } => match *fault {
                RequestFault::Delay(time) | RequestFault::Late(time) | RequestFault::DelayResponse(time) => time,
                RequestFault::Reject { retry_after, .. } => Duration::from_secs(retry_after.unwrap_or_default().into()),
                RequestFault::Reset(_) | RequestFault::Half => Duration::ZERO,
                other => panic!("the wait of {other:?}"),
            },
            Fault::Write { what: WriteFault::CrashLate(time), .. }
            | Fault::Event { what: EventFault::Skip(time) | EventFault::Hold(time), .. } => *time,
            Fault::Write { what: WriteFault::Crash { behind, .. }, .. } => {
                behind.as_ref().map_or(Duration::ZERO, |_| STALE_SERVER_DURATION)
            }
            // A process that is down is not idle, and `inject` counts what happens at a time.
            Fault::Event { what: EventFault::Close | EventFault::Expire | EventFault::Repeat, .. }
            | Fault::Write { what: WriteFault::Outage(_), .. }
            | Fault::External { .. }
            | Fault::Jitter { .. }
            | Fault::AtStep { .. }
            | Fault::At { .. } => Duration::ZERO,
            Fault::Event { what, .. } => panic!("the wait of {what:?}"),
        }
    }

    #[test]
    fn faults_wait_shorter_than_the_state_settles() {
        let mut longest = Duration::ZERO;
        let one = Scenario::new(|| App::new("copies").controller::<copies>())
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue}}");
        for scenario in [one.clone(), one.clone().instances(3), one.instances(3).sharded()] {
            let points = run(&scenario, &prepare(&scenario).unwrap(), 0, &[], None).points;
            assert!(points.n_writes > 0 && !points.reads.is_empty() && !points.events.is_empty());
            for fault in points.singles().into_iter().chain((0..2_000).flat_map(|seed| points.choose_faults(seed))) {
                longest = longest.max(delay_of(&fault));
                assert!(delay_of(&fault) + POLL_INTERVAL < QUIET_DURATION, "{fault}");
            }
        }
        assert!(longest > SKIPPED_EVENT_DELAY, "the longest delay of a write is among the faults");
    }

    /// Returns the starts and ends of the processes in a run with a fault after ten seconds.
    fn starts_and_ends(what: TimedFault) -> Vec<String> {
        starts_and_ends_under(&[Fault::At { time: Duration::from_secs(10), what }])
    }

    fn starts_and_ends_under(plan: &[Fault]) -> Vec<String> {
        let scenario = Scenario::new(|| App::new("copies").controller::<copies>())
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue}}")
            .instances(2)
            .sharded();
        let outcome = run(&scenario, &prepare(&scenario).unwrap(), 0, plan, None);
        assert_eq!(outcome.found, None);
        let is_process_line = |line: &&Line| ["starts", "has ended", "has crashed"].contains(&line.what.as_str());
        outcome.lines.iter().filter(is_process_line).map(|line| format!("{} {}", line.who, line.what)).collect()
    }

    #[test]
    fn stopped_replica_ends_and_starts_again() {
        let stop = TimedFault::Stop { instance: 1, downtime: Duration::from_secs(3) };
        let expected = ["app-0.1 starts", "app-1.1 starts", "app-1.1 has ended", "app-1.2 starts"];
        assert_eq!(starts_and_ends(stop), expected);
    }

    /// A process whose Leases have expired ends with an error, so only its next start is among the lines.
    #[test]
    fn frozen_replica_ends_after_its_leases_expired() {
        let freeze = |seconds| {
            let (length, order) = (Duration::from_secs(seconds), ThawOrder::AsWoken);
            starts_and_ends(TimedFault::Freeze(Freeze { instance: Some(1), length, order }))
        };
        assert_eq!(freeze(5), ["app-0.1 starts", "app-1.1 starts"]);
        assert_eq!(freeze(20), ["app-0.1 starts", "app-1.1 starts", "app-1.2 starts"]);
    }

    #[test]
    fn rolling_update_replaces_replicas_one_by_one() {
        let expected = [
            "app-0.1 starts",
            "app-1.1 starts",
            "app-2.1 starts",
            "app-0.1 has ended",
            "app-0.2 starts",
            "app-1.1 has ended",
            "app-1.2 starts",
            "app-2.1 has ended",
        ];
        assert_eq!(starts_and_ends(TimedFault::RollingUpdate), expected);
    }

    /// The additional replica crashes while it is not ready yet. The run does not end before the update.
    #[test]
    fn crashed_surge_replica_starts_again() {
        let update = Fault::At { time: Duration::from_secs(10), what: TimedFault::RollingUpdate };
        let crash = Fault::At { time: Duration::from_millis(10_100), what: TimedFault::Crash { instance: 2 } };
        let expected = [
            "app-0.1 starts",
            "app-1.1 starts",
            "app-2.1 starts",
            "app-2.1 has crashed",
            "app-2.2 starts",
            "app-0.1 has ended",
            "app-0.2 starts",
            "app-1.1 has ended",
            "app-1.2 starts",
            "app-2.2 has ended",
        ];
        assert_eq!(starts_and_ends_under(&[update, crash]), expected);
    }

    #[test]
    fn clock_jump_moves_one_process_only() {
        let jump = |instance| {
            let what = TimedFault::ClockJump { instance, seconds: 5 * 3_600 };
            [Fault::At { time: Duration::from_secs(1), what }]
        };
        // The first instance leads.
        assert_eq!([hours_ahead(&[]), hours_ahead(&jump(0)), hours_ahead(&jump(1))], [0, 5, 0]);
    }
}
