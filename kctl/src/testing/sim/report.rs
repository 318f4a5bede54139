//! The result of a simulation: the number of runs and faults, and a failure with the faults that suffice for it, to read.
//! The run in which it was found can be replayed with all of its faults.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use super::{
    SECONDS_VARIABLE,
    plan::Fault,
    trace::{LEFT_OUT, Line},
};

/// Maximum number of timeline lines in a report: the first and the last ones, those around faults, and the one that
/// counts lines that were not kept.
const SHOWN_MAX: usize = 120;
const FIRST: usize = 20;
const LAST: usize = 40;
/// Number of lines shown before and after a fault.
const CONTEXT_LINES: (usize, usize) = (2, 5);

/// The result of a simulation: the number of runs and faults, and the failure, if any.
///
/// ```
/// use kctl::{App, testing::{Scenario, Sim}};
///
/// let report = Sim::seeds(0..2).run(&Scenario::new(|| App::new("nothing")))?;
/// assert!(report.failure().is_none());
/// assert!(report.runs() >= 2, "the run without faults is executed twice");
/// println!("{} runs, {} faults: {:?}", report.runs(), report.injected(), report.injected_by_kind());
/// # Ok::<(), kctl::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(super) n_runs: usize,
    /// Number of reconciles that began, over all runs.
    pub(super) n_reconciles: u64,
    pub(super) injected: BTreeMap<&'static str, u64>,
    pub(super) n_not_started: usize,
    pub(super) failure: Option<Failure>,
}

impl Report {
    /// Returns the first failure, or `None` if all runs passed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns the number of runs, including those without faults and those that reduced a failing
    /// plan.
    pub fn runs(&self) -> usize {
        self.n_runs
    }

    /// Returns the number of runs that did not start, because the time of `KCTL_SIM_SECONDS` was over.
    ///
    /// They prove nothing: a report with such runs and without a failure is about the other ones only.
    pub fn not_started(&self) -> usize {
        self.n_not_started
    }

    /// Returns the number of faults that hit a request, a watch event or an [`external`](super::external) call, over
    /// all runs. Faults that happen at a time, such as a clock that jumps, count only by the requests and events that
    /// they delay or reject.
    ///
    /// Zero means that the faults never hit the app, and that the simulation proved nothing.
    pub fn injected(&self) -> u64 {
        self.injected.values().sum()
    }

    /// Returns [`injected`](Self::injected) for each kind of fault, by name: `crash`, `connection
    /// reset`, `state skipped`, …
    pub fn injected_by_kind(&self) -> &BTreeMap<&'static str, u64> {
        &self.injected
    }

    /// Returns one line about what the runs covered: `138 runs, 2,310 reconciles, 371 faults (crash 96, …), 14.2 s`.
    pub(super) fn summary(&self, took: Duration) -> String {
        let runs = match self.n_not_started {
            0 => format!("{} runs", group_digits(self.n_runs as u64)),
            n => {
                let [n_runs, n_all] = [self.n_runs, self.n_runs + n].map(|n| group_digits(n as u64));
                format!("stopped after {n_runs} of {n_all} runs, by {SECONDS_VARIABLE}")
            }
        };
        let mut by_kind: Vec<_> = self.injected.iter().collect();
        by_kind.sort_by_key(|(name, n)| (Reverse(**n), **name));
        let kinds: Vec<_> = by_kind.into_iter().map(|(name, n)| format!("{name} {}", group_digits(*n))).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let [n_reconciles, n_faults] = [self.n_reconciles, self.injected()].map(group_digits);
        format!("{runs}, {n_reconciles} reconciles, {n_faults} faults{kinds}, {:.1} s", took.as_secs_f64())
    }
}

/// Returns a number with a comma before each group of three digits.
fn group_digits(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A failing run, with the smallest set of faults that was found to reproduce it.
///
/// `Display` prints what `#[kctl::test]` panics with: the finding, these faults, a timeline of the run with them, and a
/// command. The command replays the run with all faults that it had, and reduces these again.
///
/// ```
/// use kctl::{prelude::*, testing::{Scenario, Sim}};
///
/// let scenario = Scenario::new(|| App::new("nothing"))
///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
///     .invariant("no ConfigMap", |snapshot| match snapshot.all::<ConfigMap>().is_empty() {
///         true => Ok(()),
///         false => Err("there is one".into()),
///     });
/// let report = Sim::seeds(0..2).run(&scenario)?;
/// let failure = report.failure().expect("the invariant is violated at once");
/// assert_eq!((failure.checker(), failure.message()), ("no ConfigMap", "there is one"));
/// assert_eq!(failure.seed(), "none");
/// assert!(failure.faults().is_empty());
/// assert!(failure.to_string().contains("timeline:"));
/// # Ok::<(), kctl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Failure {
    pub(super) checker: String,
    pub(super) message: String,
    /// Name of the run: `17`, `single-4`, `none`.
    pub(super) seed: String,
    pub(super) replay: String,
    pub(super) faults: Vec<String>,
    /// The plan before it was reduced; `faults` describes the reduced one.
    pub(super) full_plan: Vec<Fault>,
    /// Advice for the case that the app is right, and the scenario should say so.
    pub(super) help: Vec<String>,
    pub(super) lines: Vec<Line>,
    /// The backtrace of the panic that the finding is about.
    pub(super) backtrace: Option<String>,
}

impl Failure {
    /// Returns the name of the checker, or of the invariant, that found the failure.
    pub fn checker(&self) -> &str {
        &self.checker
    }

    /// Returns the finding of the checker.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the name of the run for `KCTL_SEED`: a number, `single-` and a number, or `none` for
    /// the run without faults.
    pub fn seed(&self) -> &str {
        &self.seed
    }

    /// Returns the faults that suffice to reproduce the failure, as text; empty if it happens
    /// without any. Some may be simpler ones that replace faults of the run.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}: {}", self.checker, self.message)?;
        match self.faults.as_slice() {
            [] => writeln!(formatter, "without any fault (seed {})", self.seed)?,
            faults => {
                let n = faults.len();
                writeln!(formatter, "seed {}, {n} of {} faults are enough:", self.seed, self.full_plan.len())?;
                for fault in faults {
                    writeln!(formatter, "  {fault}")?;
                }
            }
        }
        for help in &self.help {
            writeln!(formatter, "help: {help}")?;
        }
        writeln!(formatter, "timeline:")?;
        let mut next = 0;
        for index in select_lines(&self.lines) {
            if index > next {
                writeln!(formatter, "    ... {} lines", index - next)?;
            }
            writeln!(formatter, "  {}", self.lines[index])?;
            next = index + 1;
        }
        write!(formatter, "replay: {}", self.replay)?;
        self.backtrace.iter().try_for_each(|backtrace| write!(formatter, "\nbacktrace:\n{backtrace}"))
    }
}

fn select_lines(lines: &[Line]) -> BTreeSet<usize> {
    let n = lines.len();
    if n <= SHOWN_MAX {
        return (0..n).collect();
    }
    let mut shown: BTreeSet<usize> = (0..FIRST).chain(n - LAST..n).collect();
    shown.extend(lines.iter().position(|line| line.who == LEFT_OUT));
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| line.who == "fault") {
        let around: BTreeSet<_> =
            (index.saturating_sub(CONTEXT_LINES.0)..(index + CONTEXT_LINES.1 + 1).min(n)).collect();
        if shown.union(&around).count() <= SHOWN_MAX {
            shown.extend(around);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_runs_reconciles_and_faults() {
        let injected = [("conflict", 5), ("crash", 1_096), ("gone", 5)].into();
        let report = Report { n_runs: 134, n_reconciles: 2_310_000, injected, ..Report::default() };
        let rest = "2,310,000 reconciles, 1,106 faults (crash 1,096, conflict 5, gone 5), 14.2 s";
        let took = Duration::from_millis(14_200);
        assert_eq!(report.summary(took), format!("134 runs, {rest}"));
        let stopped = Report { n_runs: 812, n_not_started: 3_254, ..report };
        assert_eq!(stopped.summary(took), format!("stopped after 812 of 4,066 runs, by KCTL_SIM_SECONDS, {rest}"));
        let none = "0 runs, 0 reconciles, 0 faults, 0.0 s";
        assert_eq!(Report::default().summary(Duration::ZERO), none);
    }

    #[test]
    fn long_timeline_shows_begin_end_and_fault_surroundings() {
        type Ranges = &'static [(usize, usize)];
        let cases: [(usize, &[usize], Ranges); 4] = [
            (120, &[60], &[(0, 120)]),
            (1_000, &[], &[(0, 20), (960, 1_000)]),
            (1_000, &[500], &[(0, 20), (498, 506), (960, 1_000)]),
            (1_000, &[18, 999], &[(0, 24), (960, 1_000)]),
        ];
        for (n, faults, expected) in cases {
            let who = |index| if faults.contains(&index) { "fault" } else { "app-0.1" };
            let lines: Vec<_> = (0..n).map(|index| Line { who: who(index).into(), ..Line::default() }).collect();
            let expected: BTreeSet<_> = expected.iter().flat_map(|(from, to)| *from..*to).collect();
            assert_eq!(select_lines(&lines), expected, "{n} lines, faults at {faults:?}");
        }
        let mut left_out = vec![Line::default(); 1_000];
        left_out[500].who = LEFT_OUT.into();
        assert!(select_lines(&left_out).contains(&500) && select_lines(&left_out).len() == FIRST + LAST + 1);
        let faults = vec![Line { who: "fault".into(), ..Line::default() }; 1_000];
        assert!(select_lines(&faults).len() <= SHOWN_MAX);
    }
}
