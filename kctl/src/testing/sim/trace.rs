//! The timeline of a run. The same plan produces the same lines.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::normal;

/// Maximum number of lines of one run. At the bound the last [`TAIL_LEN`] are kept, and a line before them says how many
/// are left out.
const LINES_MAX: usize = 50_000;
/// Number of the last lines that are kept of a longer run. The lines before them are the first ones: two runs of one plan
/// are compared by both.
const TAIL_LEN: usize = 1_000;
/// Index of the line that says how many lines are left out.
const LEFT_OUT_AT: usize = LINES_MAX - TAIL_LEN - 1;
/// The author of that line.
pub(super) const LEFT_OUT: &str = "...";

/// One line: a time, a process or actor, and what it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Simulated time since the start of the run.
    pub(super) at: Duration,
    /// A process (`app-0.1`), `user`, `server`, `fault`, `checker` or [`LEFT_OUT`].
    pub(super) who: String,
    /// A predicate: `patches pods default/web`.
    pub(super) what: String,
    /// The field that changes, and the reconcile that does it. It is printed, but not compared: its value may be a time.
    pub(super) details: String,
    /// The object after the change that the line is about. It is compared, but not printed.
    pub(super) object: Option<Arc<Value>>,
    /// The plural of that object.
    pub(super) resource: String,
}

impl Line {
    /// Returns the parts that are compared as they are.
    fn text(&self) -> (Duration, &str, &str) {
        (self.at, &self.who, &self.what)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, who, what, details, .. } = self;
        write!(formatter, "{:>9.3} s  {who:<8} {what}{details}", at.as_secs_f64())
    }
}

/// The lines of a run, with its start.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    start: Instant,
    pub(super) lines: Vec<Line>,
    n_left_out: usize,
}

impl Trace {
    /// Starts an empty timeline at the current simulated time.
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), lines: Vec::new(), n_left_out: 0 }
    }

    pub(super) fn simulated_time(&self) -> Duration {
        self.start.elapsed()
    }

    /// Adds a line at the current time. At [`LINES_MAX`] it replaces one before the last [`TAIL_LEN`].
    pub(super) fn add(&mut self, who: &str, what: impl Into<String>) {
        self.add_line(Line { who: who.into(), what: what.into(), ..Line::default() });
    }

    /// Adds a line at the current time, such as one about a change of an object.
    pub(super) fn add_line(&mut self, line: Line) {
        if self.lines.len() == LINES_MAX {
            self.leave_one_out();
        }
        self.lines.push(Line { at: self.start.elapsed(), ..line });
        debug_assert!(self.lines.len() <= LINES_MAX, "a line of the tail makes room");
    }

    /// Removes the oldest line of the tail. The first call also replaces a line by the one that counts them.
    fn leave_one_out(&mut self) {
        self.n_left_out += if self.n_left_out == 0 { 2 } else { 1 };
        let Line { at, .. } = self.lines.remove(LEFT_OUT_AT + 1);
        let what = format!("{} lines are left out", self.n_left_out);
        self.lines[LEFT_OUT_AT] = Line { at, who: LEFT_OUT.into(), what, ..Line::default() };
    }
}

/// Returns the first pair of lines in which two runs differ, formatted, or `None` if they are equal.
///
/// The objects of the lines are compared as well: a random number in a field changes no line. `ignored` are the
/// fields of [`Scenario::ignoring`](super::Scenario::ignoring).
pub(super) fn difference(first: &[Line], second: &[Line], ignored: &[String]) -> Option<String> {
    let show = |line: Option<&Line>| line.map_or_else(|| "(nothing more)".to_owned(), ToString::to_string);
    (0..first.len().max(second.len())).find_map(|index| {
        let (one, other) = (first.get(index), second.get(index));
        if one.map(Line::text) != other.map(Line::text) {
            return Some(format!("line {index} is in one run\n  {}\nand in the other\n  {}", show(one), show(other)));
        }
        let (first, second) = (one?.object.as_deref()?, other?.object.as_deref()?);
        let field = normal::field_that_differs(first, second, &one?.resource, ignored)?;
        Some(format!("line {index} is the same in both runs, but the object is not: {field}\n  {}", show(one)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(what: &str, object: Option<Value>) -> Line {
        Line { what: what.into(), resource: "secrets".into(), object: object.map(Arc::new), ..Line::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn long_run_keeps_first_and_last_lines() {
        let after = |n: usize| {
            let mut trace = Trace::new();
            for index in 0..n {
                trace.add("app-0.1", index.to_string());
            }
            trace.lines
        };
        for n in [LINES_MAX - 1, LINES_MAX] {
            let lines = after(n);
            assert!(lines.len() == n && lines.iter().all(|line| line.who != LEFT_OUT), "{n}");
        }
        for n in [LINES_MAX + 1, LINES_MAX + 2, 2 * LINES_MAX] {
            let lines = after(n);
            assert_eq!(lines.len(), LINES_MAX, "{n}");
            let what = |index: usize| lines[index].what.as_str();
            assert_eq!(what(LEFT_OUT_AT - 1), (LEFT_OUT_AT - 1).to_string());
            assert_eq!(what(LEFT_OUT_AT), format!("{} lines are left out", n - TAIL_LEN - LEFT_OUT_AT));
            assert_eq!(what(LEFT_OUT_AT + 1), (n - TAIL_LEN).to_string());
            assert_eq!(what(LINES_MAX - 1), (n - 1).to_string());
        }
        assert_eq!(difference(&after(LINES_MAX + 9), &after(LINES_MAX + 9), &[]), None);
        let found = difference(&after(LINES_MAX + 8), &after(LINES_MAX + 9), &[]).unwrap();
        assert!(found.contains("9 lines are left out") && found.contains("10 lines are left out"), "{found}");
    }

    #[test]
    fn lines_with_different_objects_differ() {
        let secret = |value: &str| line("secrets default/a is created", Some(json!({ "data": { "key": value } })));
        let at = |time: &str| line("changes", Some(json!({ "metadata": { "uid": time }, "status": { "at": time } })));
        let cases = [
            (vec![secret("a")], vec![secret("a")], None),
            (vec![secret("a")], vec![secret("b")], Some(r#": .data.key is "a" in one run, and "b" in the other"#)),
            (vec![at("2026-01-01T00:00:00Z")], vec![at("2026-01-02T00:00:00Z")], None),
            (vec![line("starts", None)], vec![line("starts", None), secret("a")], Some("(nothing more)")),
            (vec![line("is created", None)], vec![line("is gone", None)], Some("is gone")),
        ];
        for (first, second, expected) in cases {
            let found = difference(&first, &second, &[]);
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{first:?} and {second:?}");
        }
        for (ignored, is_found) in [("/data/key", false), ("secrets/data/key", false), ("sites/data/key", true)] {
            let found = difference(&[secret("a")], &[secret("b")], &[ignored.to_owned()]);
            assert_eq!(found.is_some(), is_found, "{ignored}");
        }
    }
}
