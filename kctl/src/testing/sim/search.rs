//! Executes runs on all processors, and reduces a failing plan to the faults that it needs.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    checks::Violation,
    fresh_start::{FinalObjects, failed_start},
    normal,
    plan::{Fault, FaultPoints, TimedFault, sample_evenly, sample_with},
    progress::{AppLogs, YIELDS},
    report::{Failure, Report},
    run::{Outcome, Reference, SAME_STATE, run, run_with},
    scenario::{FreshStart, Scenario},
    time_limit::TimeLimit,
    trace,
    world::Servers,
};

/// Maximum number of runs spent on reducing a plan.
const SHRINK_RUNS_MAX: usize = 40;
/// Advice for a rule that fails before the app has changed anything.
const UNCHANGED_APP_HELP: &str = "the app has not changed anything yet: a rule about a goal belongs in `.settled(…)`";
/// Advice for two runs of one seed that differ.
const RANDOM_APP_HELP: &str = "usual causes: the order of a `HashMap` or `HashSet`, `select!` without `biased;`, random numbers \
                               (leave a random field out of the comparison, as by `.ignoring(\"secrets/data/password\")`), \
                               `Timestamp::now()` (use `cx.now()`), a static that a former run has changed (use `thread_local!`)";
/// The end of a finding about two final states, unless the run without faults is known to be wrong. A fault may repair
/// what that run misses.
const EITHER_IS_WRONG: &str = "; one of the two final states is wrong";
/// At most one of this many single faults of a test, rounded up, is a restart of a settled state.
const RESTARTS_ONE_IN: usize = 4;
/// At most one of this many single faults of a test is a frozen leader.
const FREEZES_ONE_IN: usize = 8;
/// At most one of this many single faults of a test is a step that all processes miss.
const MISSED_STEPS_ONE_IN: usize = 4;
/// At most one of this many single faults of a test is reserved for the external calls at which a fault reveals the most.
/// Spread evenly, few runs would have none of these.
const EXTERNALS_ONE_IN: usize = 4;
/// Name of the checker that compares two executions of one run.
const ONE_TRACE: &str = "one seed, one trace";
/// The seed of uids and generated names. All runs share it, so that the points for faults are where they were seen.
const GENERATOR_SEED: u64 = 0;
/// Maximum number of threads.
const THREADS_MAX: usize = 8;

/// One run: its name and its faults.
#[derive(Clone, Debug)]
pub(super) struct Case {
    name: String,
    plan: Vec<Fault>,
}

impl Case {
    /// Returns the run in which a failure was found, with all of its faults.
    pub(super) fn from_failure(failure: &Failure) -> Self {
        Self { name: failure.seed.clone(), plan: failure.full_plan.clone() }
    }
}

/// The shortest plan so far that reveals a finding.
struct Shortest {
    plan: Vec<Fault>,
    found: Violation,
    outcome: Outcome,
    /// The finding of the same checker about something else, which a shorter plan has revealed.
    other: Option<String>,
    /// Number of runs that may still be spent.
    n_left: usize,
}

/// The state of a simulation: the places for faults, the expected state, and the report so far.
pub(super) struct Search<'a> {
    scenario: &'a Scenario,
    replay: &'a str,
    /// Number of cases of each list that are executed twice.
    twice: usize,
    /// Installed servers that each run copies.
    servers: &'a Servers,
    /// Places for faults, from the run without any.
    points: FaultPoints,
    /// Final state of the run without faults, which all others have to reach.
    expected: Reference,
    /// No case starts after this time; `None` without a limit.
    time_limit: Option<TimeLimit>,
    report: Report,
}

impl<'a> Search<'a> {
    /// Prepares a search. `replay` is the command that repeats a failure, with `{seed}` for the run.
    pub(super) fn new(scenario: &'a Scenario, servers: &'a Servers, replay: &'a str, twice: usize) -> Self {
        Self {
            scenario,
            replay,
            twice,
            servers,
            points: FaultPoints::default(),
            expected: Reference::default(),
            time_limit: None,
            report: Report::default(),
        }
    }

    /// Starts no case after this time from now on. Those that run then are finished.
    pub(super) fn within(mut self, time: Option<Duration>) -> Self {
        self.time_limit = time.map(TimeLimit::start);
        self
    }

    pub(super) fn report(self) -> Report {
        self.report
    }

    /// Executes the run without faults twice. Returns `false` if it fails, which ends the
    /// simulation.
    pub(super) fn begin(&mut self) -> bool {
        let case = Case { name: "none".into(), plan: Vec::new() };
        let mut first = self.run(&case);
        self.count(&first);
        if let Some(found) = first.found.clone() {
            let first = self.with_app_logs(&case.plan, &found, first, None);
            self.record_failure(&case, found, first);
            return false;
        }
        let second = self.run(&case);
        self.count(&second);
        if let Some(found) = self.compare_runs(&first, &second) {
            self.record_failure(&case, found, second);
            return false;
        }
        let stepped = std::mem::take(&mut first.reference.final_objects);
        if let Some((found, fresh)) = self.compare_with_fresh_start(&stepped) {
            self.record_failure(&case, found, if fresh.found.is_some() { fresh } else { second });
            return false;
        }
        self.points = first.points;
        self.expected = first.reference;
        true
    }

    /// Runs the app from the start with the final objects of the steps, if the scenario says so. Returns the finding, and
    /// that run.
    fn compare_with_fresh_start(&mut self, stepped: &FinalObjects) -> Option<(Violation, Outcome)> {
        if self.scenario.fresh_start == FreshStart::Ignored {
            return None;
        }
        let scenario = self.scenario.starting_with(stepped.of_users.clone());
        let fresh = run(&scenario, self.servers, GENERATOR_SEED, &[], None);
        self.count(&fresh);
        let found = match &fresh.found {
            Some(found) => Some(failed_start(found)),
            None => stepped.compare(&fresh.reference.final_objects, &scenario.kept),
        };
        found.map(|found| (found, fresh))
    }

    /// Returns at most `max` single faults, named by their index among all of them. The restarts of a settled state are
    /// chosen first, then some frozen leaders, missed steps and faults of external calls, and the others evenly.
    pub(super) fn singles(&self, max: usize) -> Vec<Case> {
        let mut singles: Vec<_> = self.points.singles().into_iter().enumerate().collect();
        let mut freezes = singles.split_off(self.points.restarts().len());
        let mut others = freezes.split_off(self.points.freezes().len());
        let missed_steps = others.split_off(others.len() - self.points.missed_steps().len());
        let missed_steps = sample_evenly(missed_steps, max / MISSED_STEPS_ONE_IN);
        singles.truncate(max.div_ceil(RESTARTS_ONE_IN));
        singles.extend(sample_evenly(freezes, max / FREEZES_ONE_IN));
        let n_left = max - singles.len() - missed_steps.len();
        let mut externals = self.points.key_externals();
        externals.truncate(n_left.min(max / EXTERNALS_ONE_IN));
        singles.extend(sample_with(others, n_left, |(_, fault)| externals.contains(fault)));
        singles.extend(missed_steps);
        debug_assert!(singles.len() <= max, "the others get the places that are left");
        let singles = singles.into_iter();
        singles.map(|(n, fault)| Case { name: format!("single-{n}"), plan: vec![fault] }).collect()
    }

    /// Returns the combination of faults that a seed selects.
    pub(super) fn case_from_seed(&self, seed: u64) -> Case {
        Case { name: seed.to_string(), plan: self.points.choose_faults(seed) }
    }

    /// Executes cases until one fails. If several fail on different threads, the first one in the list is reported.
    pub(super) fn run_cases(&mut self, cases: &[Case]) {
        if self.report.failure.is_some() {
            return;
        }
        let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let outcomes = Mutex::new(Vec::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(index).filter(|_| index < failed.load(Ordering::Relaxed)) else { return };
                if self.time_limit.as_ref().is_some_and(TimeLimit::is_over) {
                    return;
                }
                let outcome = if index < self.twice { self.run_twice(case) } else { self.compare(case) };
                if let Some(found) = &outcome.found {
                    // A run that is stuck keeps a processor until the program ends, so no other one begins.
                    failed.fetch_min(if found.checker == YIELDS { 0 } else { index }, Ordering::Relaxed);
                }
                outcomes.lock().push((index, outcome.without_unread_parts()));
            }
        };
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        std::thread::scope(|scope| {
            for _ in 1..n_threads {
                scope.spawn(work);
            }
            work();
        });
        let mut outcomes = outcomes.into_inner();
        outcomes.sort_by_key(|(index, _)| *index);
        if outcomes.iter().all(|(_, outcome)| outcome.found.is_none()) {
            self.report.n_not_started += cases.len() - outcomes.len();
        }
        for (index, outcome) in outcomes {
            self.count(&outcome);
            if let (None, Some(found)) = (&self.report.failure, outcome.found.clone()) {
                self.shrink(&cases[index], found, outcome);
            }
        }
    }

    /// Executes a case, and a second time if nothing was found: both have to produce the same
    /// trace.
    fn run_twice(&self, case: &Case) -> Outcome {
        let first = self.compare(case);
        if first.found.is_some() {
            return first;
        }
        let second = self.compare(case);
        let found = self.compare_runs(&first, &second);
        let (n_runs, n_reconciles) = (first.n_runs + second.n_runs, first.n_reconciles + second.n_reconciles);
        let mut injected = first.injected;
        add(&mut injected, &second.injected);
        Outcome { found, injected, n_runs, n_reconciles, ..second }
    }

    /// Compares two executions of one case. The first has found nothing.
    fn compare_runs(&self, first: &Outcome, second: &Outcome) -> Option<Violation> {
        let difference = trace::difference(&first.lines, &second.lines, &self.scenario.ignored);
        difference.map(|difference| Violation::new(ONE_TRACE, difference)).or_else(|| second.found.clone())
    }

    /// Executes a case once, and compares its final state with the expected one.
    fn compare(&self, case: &Case) -> Outcome {
        run(self.scenario, self.servers, GENERATOR_SEED, &case.plan, Some(&self.expected))
    }

    /// Executes a case without comparing it: its final state is the one that other runs have to reach.
    fn run(&self, case: &Case) -> Outcome {
        run(self.scenario, self.servers, GENERATOR_SEED, &case.plan, None)
    }

    /// Adds the numbers of a run to the report.
    fn count(&mut self, outcome: &Outcome) {
        self.report.n_runs += outcome.n_runs;
        self.report.n_reconciles += outcome.n_reconciles;
        add(&mut self.report.injected, &outcome.injected);
    }

    /// Reduces a plan to the faults that it needs, and replaces these by simpler ones if they reveal the same.
    fn shrink(&mut self, case: &Case, found: Violation, outcome: Outcome) {
        if found.checker == YIELDS {
            // Each try would keep one more processor.
            self.record_failure(case, found, outcome);
            return;
        }
        let (plan, n_left) = (case.plan.clone(), SHRINK_RUNS_MAX);
        let mut shortest = Shortest { plan, found, outcome, other: None, n_left };
        self.drop_faults(&mut shortest);
        self.simplify_faults(&mut shortest);
        let Shortest { plan, mut found, outcome, other, .. } = shortest;
        debug_assert!(plan.len() <= case.plan.len(), "faults are removed, or replaced one for one");
        // A state before a step is not the one that the restart leads to.
        if found.checker == SAME_STATE && outcome.reference.differs_before.is_none() {
            found.message += self.verdict(&outcome.reference).unwrap_or(EITHER_IS_WRONG);
        }
        let outcome = self.with_app_logs(&plan, &found, outcome, Some(&self.expected));
        self.record_failure(&Case { plan, ..case.clone() }, found, outcome);
        if let Some(failure) = &mut self.report.failure {
            failure.full_plan.clone_from(&case.plan);
            failure
                .help
                .extend(other.map(|message| format!("another finding, with fewer or simpler faults: {message}")));
        }
    }

    /// Drops faults as long as the same is found: halves first, then one by one (delta debugging).
    fn drop_faults(&mut self, shortest: &mut Shortest) {
        let mut size = shortest.plan.len() / 2;
        while size > 0 {
            let mut start = 0;
            while start < shortest.plan.len() {
                let mut plan = shortest.plan.clone();
                plan.drain(start..(start + size).min(plan.len()));
                if !self.fails_alike(shortest, plan) {
                    start += size;
                }
            }
            size /= 2;
        }
    }

    /// Replaces each fault by simpler ones as long as the same is found.
    fn simplify_faults(&mut self, shortest: &mut Shortest) {
        let mut index = 0;
        while index < shortest.plan.len() {
            let mut candidates = shortest.plan[index].simpler().into_iter();
            let is_simpler = candidates.any(|fault| {
                let mut plan = shortest.plan.clone();
                plan[index] = fault;
                self.fails_alike(shortest, plan)
            });
            // The simpler fault is tried next, because there may be a simpler one still.
            if !is_simpler {
                index += 1;
            }
        }
    }

    /// Executes a plan, unless all runs for that are used up. If it reveals the same, it becomes the shortest one. Returns
    /// `true` then.
    fn fails_alike(&mut self, shortest: &mut Shortest, plan: Vec<Fault>) -> bool {
        if shortest.n_left == 0 {
            return false;
        }
        shortest.n_left -= 1;
        let case = Case { name: String::new(), plan };
        let outcome = if shortest.found.checker == ONE_TRACE { self.run_twice(&case) } else { self.compare(&case) };
        self.count(&outcome);
        let Some(found) = outcome.found.clone().filter(|found| found.checker == shortest.found.checker) else {
            return false;
        };
        if found.subject != shortest.found.subject {
            shortest.other.get_or_insert(found.message);
            return false;
        }
        (shortest.plan, shortest.found, shortest.outcome) = (case.plan, found, outcome);
        true
    }

    /// Returns a note if the run without faults seems to be the wrong one.
    ///
    /// A level-triggered controller finds nothing to do after a restart. If a restart alone changes
    /// the settled state to what the faults led to, the run without faults had not reached the
    /// desired state.
    fn verdict(&mut self, found: &Reference) -> Option<&'static str> {
        let crash = |instance| Fault::At { time: self.points.settled, what: TimedFault::Crash { instance } };
        let plan = (0..self.points.instances).map(crash).collect();
        let restarted = self.compare(&Case { name: String::new(), plan });
        self.count(&restarted);
        // A run that fails before it has settled has no state to compare.
        let has_settled = restarted.found.as_ref().is_none_or(|found| found.checker == SAME_STATE);
        let restart_converges = has_settled && normal::difference(&found.state, &restarted.reference.state).is_none();
        restart_converges.then_some(
            "; the run without faults is the wrong one: a restart alone, once everything had settled, leads to the same state as \
             these faults",
        )
    }

    /// Returns advice for the case that the app is right.
    fn help(&self, case: &Case, found: &Violation, reference: &Reference) -> Vec<String> {
        let mut help: Vec<String> = Vec::new();
        let is_invariant = self.scenario.invariants.iter().any(|invariant| invariant.name == found.checker);
        if is_invariant && case.plan.is_empty() && reference.changes_by_app == 0 {
            help.push(UNCHANGED_APP_HELP.into());
        }
        if found.checker == ONE_TRACE {
            help.push(RANDOM_APP_HELP.into());
        }
        if found.checker == SAME_STATE {
            let states = [&self.expected, reference].map(|one| one.state_before(reference.differs_before));
            if let Some(field) = normal::field_to_ignore(states[0], states[1]) {
                help.push(format!("if both values are right, `.ignoring({field:?})` leaves the field out"));
            }
        }
        let mut options: Vec<&str> = case.plan.iter().filter_map(Fault::option_help).collect();
        options.sort_unstable();
        options.dedup();
        help.extend(options.into_iter().map(ToOwned::to_owned));
        help
    }

    /// Executes the plan of a finding once more, so that the timeline has the logs of the app as well. `expected` is the
    /// state with which the finding was made.
    fn with_app_logs(
        &self,
        plan: &[Fault],
        found: &Violation,
        outcome: Outcome,
        expected: Option<&Reference>,
    ) -> Outcome {
        if [ONE_TRACE, YIELDS].contains(&found.checker.as_str()) {
            return outcome;
        }
        let again = run_with(AppLogs::InTimeline, self.scenario, self.servers, GENERATOR_SEED, plan, expected);
        // The message may have got a note at its end.
        let is_alike = |other: &Violation| other.checker == found.checker && found.message.starts_with(&other.message);
        if again.found.as_ref().is_some_and(is_alike) { Outcome { lines: again.lines, ..outcome } } else { outcome }
    }

    fn record_failure(&mut self, case: &Case, found: Violation, outcome: Outcome) {
        let help = self.help(case, &found, &outcome.reference);
        self.report.failure = Some(Failure {
            checker: found.checker,
            message: found.message,
            seed: case.name.clone(),
            replay: self.replay.replace("{seed}", &case.name),
            faults: describe_faults(&case.plan, outcome.fault_targets.as_ref()),
            help,
            full_plan: case.plan.clone(),
            lines: outcome.lines,
            backtrace: outcome.backtrace,
        });
    }
}

/// Describes the faults of a plan. `targets` has the request or event that each fault hit, by its index; `None` if that is
/// not known.
fn describe_faults(plan: &[Fault], targets: Option<&BTreeMap<usize, String>>) -> Vec<String> {
    let describe = |(index, fault): (usize, &Fault)| match targets {
        Some(targets) => fault.describe_with_target(targets.get(&index).map(String::as_str)),
        None => fault.to_string(),
    };
    plan.iter().enumerate().map(describe).collect()
}

fn add(sum: &mut BTreeMap<&'static str, u64>, more: &BTreeMap<&'static str, u64>) {
    for (name, n) in more {
        *sum.entry(name).or_default() += n;
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kctl_apiserver::faults::Moment;
    use kctl_runtime::reconcile::Result;

    use super::{
        super::{
            normal::NormalizedObject,
            plan::{StaleServer, WriteFault},
            run::prepare,
        },
        *,
    };
    use crate::{
        App,
        prelude::{Action, Context, controller},
        testing::Snapshot,
    };

    #[test]
    fn failure_of_correct_app_names_options() {
        let scenario = Scenario::new(|| App::new("nothing"));
        let servers = prepare(&scenario).unwrap();
        let mut search = Search::new(&scenario, &servers, "", 0);
        let state = |n: u32| {
            let object = serde_json::json!({ "status": { "number": n } });
            vec![NormalizedObject { name: "sites default/a".into(), resource: "sites".into(), object }]
        };
        search.expected.state = state(1);
        let found = Reference { state: state(2), ..Reference::default() };
        let jump = |seconds| Fault::At { time: Duration::ZERO, what: TimedFault::ClockJump { instance: 0, seconds } };
        let case = Case { name: String::new(), plan: vec![jump(1), jump(2)] };
        let ignoring = r#"if both values are right, `.ignoring("sites/status/number")` leaves the field out"#;
        let clocks =
            "`.without_clock_faults()` is for an app that relies on clocks that agree with the server's".to_owned();
        let help = |checker| search.help(&case, &Violation::new(checker, ""), &found);
        assert_eq!(help(SAME_STATE), [ignoring.to_owned(), clocks.clone()]);
        assert_eq!(help("no hot loop"), std::slice::from_ref(&clocks));
        assert_eq!(help(ONE_TRACE), [RANDOM_APP_HELP.to_owned(), clocks]);
    }

    #[test]
    fn few_single_faults_include_each_sampled_kind() {
        let scenario = Scenario::new(|| App::new("nothing"));
        let servers = prepare(&scenario).unwrap();
        let mut search = Search::new(&scenario, &servers, "", 0);
        search.points = FaultPoints {
            settled_times: [60, 90].map(Duration::from_secs).to_vec(),
            settled: Duration::from_secs(90),
            write_times: (20..50).map(Duration::from_secs).collect(),
            writers: vec![0; 30],
            n_writes: 30,
            n_steps: 3,
            instances: 2,
            ..FaultPoints::default()
        };
        for (max, expected) in [(16, (16, 2, 2, 3)), (4, (4, 1, 0, 1)), (1, (1, 1, 0, 0)), (0, (0, 0, 0, 0))] {
            let plans: Vec<_> = search.singles(max).into_iter().map(|case| case.plan).collect();
            let n_of = |is: fn(&Fault) -> bool| plans.iter().filter(|plan| is(&plan[0])).count();
            let restarts = n_of(|fault| matches!(fault, Fault::At { what: TimedFault::Crash { .. }, .. }));
            let freezes = n_of(|fault| matches!(fault, Fault::At { what: TimedFault::Freeze(_), .. }));
            let missed = n_of(|fault| matches!(fault, Fault::AtStep { .. }));
            assert_eq!((plans.len(), restarts, freezes, missed), expected, "of {max}");
        }
    }

    #[test]
    fn few_single_faults_include_failing_external_calls() {
        let scenario = Scenario::new(|| App::new("nothing"));
        let servers = prepare(&scenario).unwrap();
        let mut search = Search::new(&scenario, &servers, "", 0);
        search.points = FaultPoints {
            externals: ["register", "register", "unregister", "unregister"].map(String::from).to_vec(),
            n_externals_of_work: 3,
            n_writes: 50,
            n_steps: 2,
            instances: 1,
            ..FaultPoints::default()
        };
        let first = ["call 3: fails before it took effect"];
        let four = [
            "call 1: crash after it took effect",
            "call 3: crash after it took effect",
            "call 2: fails before it took effect",
            "call 3: fails before it took effect",
        ];
        for (max, expected) in [(16, &four[..]), (4, &first[..]), (1, &four[..0])] {
            let singles = search.singles(max);
            assert_eq!(singles.len(), max);
            let all: Vec<_> = singles.iter().map(|case| case.plan[0].to_string()).collect();
            let reserved: Vec<_> = all.iter().filter(|text| four.contains(&text.as_str())).collect();
            assert_eq!(reserved, expected, "of {max}: {all:?}");
        }
        let all = search.singles(usize::MAX);
        assert!(all.iter().map(|case| case.plan[0].clone()).eq(search.points.singles()), "in the order of the list");
    }

    #[test]
    fn special_restarts_that_are_not_needed_are_dropped() {
        let scenario = Scenario::new(|| App::new("nothing"))
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
            .invariant("none", |_| Err("always".into()));
        let servers = prepare(&scenario).unwrap();
        let behind = StaleServer { cluster: "".into(), revision: 1, is_outdated: false };
        let cases = [
            (
                WriteFault::Crash { moment: Moment::After, behind: Some(behind) },
                "crash after write 1 took effect (hit nothing)",
            ),
            (WriteFault::Outage(Moment::Before), "crash before write 1 took effect (hit nothing)"),
            (WriteFault::CrashLate(Duration::from_secs(1)), "crash after write 1 took effect (hit nothing)"),
        ];
        for (what, expected) in cases {
            let mut search = Search::new(&scenario, &servers, "", 0);
            search.run_cases(&[Case { name: "0".into(), plan: vec![Fault::Write { nth: 1, what }] }]);
            assert_eq!(search.report().failure().unwrap().faults(), [expected]);
        }
    }

    #[test]
    fn plan_that_reveals_another_bug_is_not_taken() {
        let before = |seconds| {
            move |snapshot: &Snapshot| {
                assert!(snapshot.time() < Duration::from_secs(seconds), "{seconds} s have passed");
                Ok(())
            }
        };
        // The state settles after 15 s and after 31 s. A missed step adds 20 s.
        let scenario = Scenario::new(|| App::new("nothing"))
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
            .step("wait", |_client| async { Ok(()) })
            .settled("late", before(40))
            .settled("early", before(20));
        let servers = prepare(&scenario).unwrap();
        let mut search = Search::new(&scenario, &servers, "", 0);
        let jump = Fault::At { time: Duration::ZERO, what: TimedFault::ClockJump { instance: 0, seconds: 1 } };
        search.run_cases(&[Case { name: "0".into(), plan: vec![Fault::AtStep { nth: 1 }, jump] }]);
        let report = search.report();
        let failure = report.failure().unwrap();
        assert_eq!(failure.faults(), ["all processes are down during step 1"], "{failure}");
        assert!(failure.message().starts_with(r#"rule "late": 40 s have passed"#), "{failure}");
        let other = r#"help: another finding, with fewer or simpler faults: rule "early": 20 s have passed"#;
        assert!(failure.to_string().contains(other), "{failure}");
    }

    /// Reads its object, and patches it.
    #[controller(crate = crate, primary(get, patch))]
    async fn labels(config: Arc<ConfigMap>, cx: Context<labels>) -> Result<Action> {
        if config.metadata.labels.is_none() {
            cx.get().await?;
            cx.patch(crate::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
        }
        Ok(Action::await_change())
    }

    #[test]
    fn jitter_depends_on_its_seed_alone() {
        let object = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
        let scenario = Scenario::new(|| App::new("labels").controller::<labels>());
        let scenario = ["a", "b", "c"].iter().fold(scenario, |all, name| all.objects(&object(name)));
        let servers = prepare(&scenario).unwrap();
        let under = |plan: &[Fault]| {
            let outcome = run(&scenario, &servers, GENERATOR_SEED, plan, None);
            assert_eq!(outcome.found, None);
            outcome
        };
        let (plain, mut n_different) = (under(&[]), 0);
        for seed in 0..4 {
            let [first, second] = [(); 2].map(|()| under(&[Fault::Jitter { seed }]));
            assert_eq!(trace::difference(&first.lines, &second.lines, &[]), None, "seed {seed}");
            n_different += usize::from(trace::difference(&plain.lines, &first.lines, &[]).is_some());
            let mut names = first.injected.keys();
            assert!(names.all(|name| ["slow request", "slow response"].contains(name)), "{:?}", first.injected);
        }
        assert!(n_different > 1, "{n_different} of 4 seeds change the timeline");
    }

    #[test]
    fn restart_that_fails_early_blames_no_run() {
        let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
        let settles = Scenario::new(|| App::new("nothing")).objects(object);
        let fails = settles.clone().invariant("none", |_| Err("always".into()));
        let servers = prepare(&settles).unwrap();
        let mut search = Search::new(&settles, &servers, "", 0);
        let settled = search.run(&Case { name: String::new(), plan: Vec::new() }).reference;
        assert!(
            search.verdict(&settled).is_some(),
            "the restart reaches this state, and the run without faults does not"
        );
        assert_eq!(search.verdict(&Reference::default()), None);
        let mut search = Search::new(&fails, &servers, "", 0);
        assert_eq!(search.verdict(&Reference::default()), None, "the restart has no state");
    }
}
