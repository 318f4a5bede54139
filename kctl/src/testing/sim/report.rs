//! What a simulation has come to: how much was tried, and the shortest schedule that fails, to read and to replay.

use std::fmt;

use super::trace::Line;

/// Lines of a timeline that are shown at most: the first and the last ones.
const SHOWN_MAX: usize = 120;

/// What was tried, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(super) n_runs: usize,
    pub(super) n_injected: u64,
    pub(super) failure: Option<Failure>,
}

impl Report {
    /// What was found, if anything.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// How many runs there were, the one without faults among them.
    pub fn runs(&self) -> usize {
        self.n_runs
    }

    /// How many faults met a request or an event, over all runs.
    pub fn injected(&self) -> u64 {
        self.n_injected
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
    pub(super) lines: Vec<Line>,
}

impl Failure {
    /// The checker or the invariant.
    pub fn checker(&self) -> &str {
        &self.checker
    }

    /// What it found.
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
            }
        }
        writeln!(formatter, "timeline:")?;
        let n = self.lines.len();
        for (index, line) in self.lines.iter().enumerate() {
            if n > SHOWN_MAX && index == SHOWN_MAX / 2 {
                writeln!(formatter, "    ... {} lines", n - SHOWN_MAX)?;
            }
            if n <= SHOWN_MAX || index < SHOWN_MAX / 2 || index >= n - SHOWN_MAX / 2 {
                writeln!(formatter, "  {line}")?;
            }
        }
        write!(formatter, "replay: {}", self.replay)
    }
}
