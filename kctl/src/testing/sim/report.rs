//! What a simulation has come to: how much was tried, and the shortest schedule that fails, to read and to replay.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::trace::Line;

/// Lines of a timeline that are shown at most: the first and the last ones, and what happened around faults.
const SHOWN_MAX: usize = 120;
const FIRST: usize = 20;
const LAST: usize = 40;
/// Lines that are shown before and after a fault.
const AROUND: (usize, usize) = (2, 5);

/// The result of a simulation: the number of runs and faults, and the failure, if any.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(super) n_runs: usize,
    pub(super) injected: BTreeMap<&'static str, u64>,
    pub(super) failure: Option<Failure>,
}

impl Report {
    /// Returns the first failure, or `None` if all runs passed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// How many runs there were, the one without faults among them.
    pub fn runs(&self) -> usize {
        self.n_runs
    }

    /// How many faults met a request or an event, over all runs.
    pub fn injected(&self) -> u64 {
        self.injected.values().sum()
    }

    /// The same for each kind of fault, by its name: `crash`, `connection reset`, `state skipped`, …
    pub fn injected_by_kind(&self) -> &BTreeMap<&'static str, u64> {
        &self.injected
    }
}

/// A run in which a checker or an invariant found something, with as few faults as still do it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(super) checker: String,
    pub(super) message: String,
    /// How the run is called: `17`, `single-4`, `none`.
    pub(super) seed: String,
    pub(super) replay: String,
    pub(super) faults: Vec<String>,
    pub(super) n_faults_before: usize,
    /// What to write where the scenario does not mean the faults.
    pub(super) help: Option<&'static str>,
    pub(super) lines: Vec<Line>,
}

impl Failure {
    /// The checker or the invariant.
    pub fn checker(&self) -> &str {
        &self.checker
    }

    /// Returns the finding of the checker.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The run as `KCTL_SEED` names it: a number, `single-` and a number, or `none` for the run without faults.
    pub fn seed(&self) -> &str {
        &self.seed
    }

    /// The faults that are enough for it.
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
                writeln!(formatter, "seed {}, {n} of {} faults are enough:", self.seed, self.n_faults_before)?;
                for fault in faults {
                    writeln!(formatter, "  {fault}")?;
                }
                if let Some(help) = self.help {
                    writeln!(formatter, "help: {help}")?;
                }
            }
        }
        writeln!(formatter, "timeline:")?;
        let mut next = 0;
        for index in shown(&self.lines) {
            if index > next {
                writeln!(formatter, "    ... {} lines", index - next)?;
            }
            writeln!(formatter, "  {}", self.lines[index])?;
            next = index + 1;
        }
        write!(formatter, "replay: {}", self.replay)
    }
}

/// The lines that are shown of a timeline.
fn shown(lines: &[Line]) -> BTreeSet<usize> {
    let n = lines.len();
    if n <= SHOWN_MAX {
        return (0..n).collect();
    }
    let mut shown: BTreeSet<usize> = (0..FIRST).chain(n - LAST..n).collect();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| line.who == "fault") {
        let around: BTreeSet<_> = (index.saturating_sub(AROUND.0)..(index + AROUND.1 + 1).min(n)).collect();
        if shown.union(&around).count() <= SHOWN_MAX {
            shown.extend(around);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn long_timeline_shows_its_begin_its_end_and_what_happened_around_faults() {
        type Ranges = &'static [(usize, usize)];
        let cases: [(usize, &[usize], Ranges); 4] = [
            (120, &[60], &[(0, 120)]),
            (1_000, &[], &[(0, 20), (960, 1_000)]),
            (1_000, &[500], &[(0, 20), (498, 506), (960, 1_000)]),
            (1_000, &[18, 999], &[(0, 24), (960, 1_000)]),
        ];
        for (n, faults, expected) in cases {
            let who = |index| if faults.contains(&index) { "fault" } else { "app-0.1" };
            let lines: Vec<_> =
                (0..n).map(|index| Line { at: Duration::ZERO, who: who(index).into(), what: String::new() }).collect();
            let expected: BTreeSet<_> = expected.iter().flat_map(|(from, to)| *from..*to).collect();
            assert_eq!(shown(&lines), expected, "{n} lines, faults at {faults:?}");
        }
        let faults = vec![Line { at: Duration::ZERO, who: "fault".into(), what: String::new() }; 1_000];
        assert!(shown(&faults).len() <= SHOWN_MAX);
    }
}
