//! The timeline of a run. The same plan produces the same lines.

use std::{fmt, time::Duration};

use tokio::time::Instant;

/// Maximum number of lines of one run; later ones are dropped.
const LINES_MAX: usize = 50_000;

/// One line: a time, a process or actor, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Simulated time since the start of the run.
    pub(super) at: Duration,
    /// A process (`app-0.1`), `user`, `server`, `fault` or `checker`.
    pub(super) who: String,
    /// A predicate: `patches pods default/web`.
    pub(super) what: String,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, who, what } = self;
        write!(formatter, "{:>9.3} s  {who:<8} {what}", at.as_secs_f64())
    }
}

/// The lines of a run, with its start.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    start: Instant,
    pub(super) lines: Vec<Line>,
}

impl Trace {
    /// Starts an empty timeline at the current simulated time.
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), lines: Vec::new() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Adds a line at the current time. Above [`LINES_MAX`] it does nothing.
    pub(super) fn add(&mut self, who: &str, what: impl Into<String>) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(Line { at: self.start.elapsed(), who: who.into(), what: what.into() });
        }
    }
}

/// Returns the first pair of lines in which two runs differ, formatted, or `None` if they are equal.
pub(super) fn difference(first: &[Line], second: &[Line]) -> Option<String> {
    let index = (0..first.len().max(second.len())).find(|index| first.get(*index) != second.get(*index))?;
    let show = |lines: &[Line]| lines.get(index).map_or_else(|| "(nothing more)".to_owned(), ToString::to_string);
    Some(format!("line {index} is in one run\n  {}\nand in the other\n  {}", show(first), show(second)))
}
