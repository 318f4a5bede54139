//! Runs cases on all processors, and looks for the shortest schedule that fails.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{
    checks::Found,
    plan::{Fault, Points, evenly},
    report::{Failure, Report},
    run::{Outcome, Reference, broken, prepare, run},
    scenario::Scenario,
    trace::{self, Line},
    world::Servers,
};

/// Runs that are spent on a shorter schedule.
const SHRINK_RUNS_MAX: usize = 40;
/// Threads that run cases.
const THREADS_MAX: usize = 8;

/// One run: its name and its faults.
#[derive(Clone, Debug)]
pub(super) struct Case {
    name: String,
    seed: u64,
    plan: Vec<Fault>,
}

pub(super) struct Search<'a> {
    scenario: &'a Scenario,
    replay: &'a str,
    /// Set up by [`begin`](Self::begin).
    servers: Option<Servers>,
    points: Points,
    expected: Reference,
    report: Report,
}

impl<'a> Search<'a> {
    pub(super) fn new(scenario: &'a Scenario, replay: &'a str) -> Self {
        Self {
            scenario,
            replay,
            servers: None,
            points: Points::default(),
            expected: Reference::default(),
            report: Report::default(),
        }
    }

    pub(super) fn report(self) -> Report {
        self.report
    }

    /// The run without faults, twice. False when it fails already.
    pub(super) fn begin(&mut self) -> bool {
        let case = Case { name: "none".into(), seed: 0, plan: Vec::new() };
        match prepare(self.scenario) {
            Ok(servers) => self.servers = Some(servers),
            Err(found) => {
                self.fail(&case, found, Vec::new());
                return false;
            }
        }
        let first = self.run(&case, false);
        self.count(&first);
        if let Some(found) = first.found.clone() {
            self.fail(&case, found, first.lines);
            return false;
        }
        let second = self.run(&case, false);
        self.count(&second);
        if let Some(difference) = trace::difference(&first.lines, &second.lines) {
            self.fail(&case, Found::new("one seed, one trace", difference), second.lines);
            return false;
        }
        self.points = first.points;
        self.expected = first.reference;
        true
    }

    /// Single faults, with their numbers among all of them.
    pub(super) fn singles(&self, max: usize) -> Vec<Case> {
        let singles = evenly(self.points.singles().into_iter().enumerate().collect(), max).into_iter();
        singles.map(|(n, fault)| Case { name: format!("single-{n}"), seed: 0, plan: vec![fault] }).collect()
    }

    /// The combination of a seed. All runs have one seed for names, so that faults are where they were seen.
    pub(super) fn seeded(&self, seed: u64) -> Case {
        Case { name: seed.to_string(), seed: 0, plan: self.points.seeded(seed) }
    }

    /// Runs cases until one fails; of several that fail at once, the first one counts.
    pub(super) fn all(&mut self, cases: &[Case]) {
        if self.report.failure.is_some() {
            return;
        }
        let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let outcomes = Mutex::new(Vec::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(index).filter(|_| index < failed.load(Ordering::Relaxed)) else { return };
                let outcome = self.run(case, true);
                if outcome.found.is_some() {
                    failed.fetch_min(index, Ordering::Relaxed);
                }
                // The lines of runs in which nothing was found are of no use any more.
                let kept = if outcome.found.is_some() { outcome } else { Outcome { lines: Vec::new(), ..outcome } };
                outcomes.lock().push((index, kept));
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
        for (index, outcome) in outcomes {
            self.count(&outcome);
            if let (None, Some(found)) = (&self.report.failure, outcome.found.clone()) {
                self.shrink(&cases[index], found, outcome);
            }
        }
    }

    fn run(&self, case: &Case, compared: bool) -> Outcome {
        let expected = compared.then_some(&self.expected);
        match &self.servers {
            Some(servers) => run(self.scenario, servers, case.seed, &case.plan, expected),
            None => broken(Found::new("the simulation", "it has not begun")),
        }
    }

    fn count(&mut self, outcome: &Outcome) {
        self.report.n_runs += 1;
        self.report.n_injected += outcome.n_injected;
    }

    /// Drops faults as long as the same checker still finds something: halves first, then one by one.
    fn shrink(&mut self, case: &Case, found: Found, outcome: Outcome) {
        let mut shortest = (case.plan.clone(), found, outcome);
        let mut left = SHRINK_RUNS_MAX;
        let mut size = shortest.0.len() / 2;
        while size > 0 && left > 0 {
            let mut start = 0;
            while start < shortest.0.len() && left > 0 {
                let mut plan = shortest.0.clone();
                plan.drain(start..(start + size).min(plan.len()));
                left -= 1;
                let outcome = self.run(&Case { plan: plan.clone(), ..case.clone() }, true);
                self.count(&outcome);
                match outcome.found.clone() {
                    Some(found) if found.checker == shortest.1.checker => shortest = (plan, found, outcome),
                    _ => start += size,
                }
            }
            size /= 2;
        }
        let (plan, found, outcome) = shortest;
        let n_before = case.plan.len();
        self.fail(&Case { plan, ..case.clone() }, found, outcome.lines);
        if let Some(failure) = &mut self.report.failure {
            failure.n_faults_before = n_before;
        }
    }

    fn fail(&mut self, case: &Case, found: Found, lines: Vec<Line>) {
        self.report.failure = Some(Failure {
            checker: found.checker,
            message: found.message,
            seed: case.name.clone(),
            replay: self.replay.replace("{seed}", &case.name),
            faults: case.plan.iter().map(ToString::to_string).collect(),
            n_faults_before: case.plan.len(),
            lines,
        });
    }
}
