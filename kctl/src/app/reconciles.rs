//! Records of reconciles on embedded API servers: how often each key ran, and which keys were given up.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use kctl_runtime::{
    key::ObjectKey,
    worker::{Decision, Outcome, Report},
};
use parking_lot::Mutex;

/// Minimum number of reconciles for a key to be named as busy.
const BUSY_MIN: u64 = 100;
/// Maximum number of busy keys that are named.
const BUSY_NAMED_MAX: usize = 5;
/// Maximum number of keys that are named as given up, and of those that are named as failing.
const GIVEN_UP_NAMED_MAX: usize = 20;

/// The records of all keys, by controller and key. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Reconciles(Arc<Mutex<BTreeMap<(String, ObjectKey), KeyRecord>>>);

#[derive(Default)]
struct KeyRecord {
    /// Number of reconciles since the last [`Reconciles::restart`].
    n: u64,
    last: LastEnd,
}

/// The end of a key's last reconcile, with the text of a failure.
#[derive(Default)]
enum LastEnd {
    #[default]
    Done,
    /// It is tried again.
    Failed(String),
    /// It is not tried again by itself.
    GivenUp(String),
}

impl Reconciles {
    /// Records the end of a reconcile.
    pub(crate) fn record_end(&self, report: &Report) {
        let last = match (&report.decision, &report.outcome) {
            (Decision::Drop, outcome) => LastEnd::GivenUp(failure(outcome)),
            (_, outcome @ (Outcome::Failed { .. } | Outcome::Panicked(_) | Outcome::TimedOut)) => {
                LastEnd::Failed(failure(outcome))
            }
            _ => LastEnd::Done,
        };
        self.record(&report.controller, &report.key, last);
    }

    fn record(&self, controller: &str, key: &ObjectKey, last: LastEnd) {
        let mut records = self.0.lock();
        let record = records.entry((controller.to_owned(), key.clone())).or_default();
        record.n += 1;
        record.last = last;
    }

    /// Counts from zero again.
    pub(crate) fn restart(&self) {
        self.0.lock().values_mut().for_each(|record| record.n = 0);
    }

    /// Returns lines about the keys that keep an app busy: reconciled very often, failing, or given up.
    pub(crate) fn busy_lines(&self) -> Vec<String> {
        [self.frequent_keys(), self.failing_keys(), self.given_up_keys()].concat()
    }

    /// Returns a line for each key that was reconciled very often, the most frequent first.
    fn frequent_keys(&self) -> Vec<String> {
        let records = self.0.lock();
        let mut busy: Vec<_> = records.iter().filter(|(_, record)| record.n >= BUSY_MIN).collect();
        busy.sort_by_key(|(_, record)| Reverse(record.n));
        let line = |((controller, key), record): (&(String, ObjectKey), &KeyRecord)| {
            let n = record.n;
            format!(
                "{controller} {key}: reconciled {n} times until then; write only what differs, and requeue after a time above zero"
            )
        };
        busy.into_iter().take(BUSY_NAMED_MAX).map(line).collect()
    }

    /// Returns a line for each key that was given up and has not run since.
    pub(super) fn given_up_keys(&self) -> Vec<String> {
        let gave_up = |last: &LastEnd| match last {
            LastEnd::GivenUp(text) => Some(format!("gave up: {text}")),
            LastEnd::Done | LastEnd::Failed(_) => None,
        };
        let (mut lines, n_more) = self.lines_of(gave_up);
        if n_more > 0 {
            lines.push(format!("more objects that were given up: {n_more}"));
        }
        lines
    }

    /// Returns a line with the last failure for each key that fails and is tried again.
    fn failing_keys(&self) -> Vec<String> {
        let failed = |last: &LastEnd| match last {
            LastEnd::Failed(text) => Some(format!("the last time: {text}")),
            LastEnd::Done | LastEnd::GivenUp(_) => None,
        };
        self.lines_of(failed).0
    }

    /// Returns the lines of at most [`GIVEN_UP_NAMED_MAX`] keys, and the number of the others.
    fn lines_of(&self, describe: impl Fn(&LastEnd) -> Option<String>) -> (Vec<String>, usize) {
        let records = self.0.lock();
        let line = |((controller, key), record): (&(String, ObjectKey), &KeyRecord)| {
            describe(&record.last).map(|text| format!("{controller} {key}: {text}"))
        };
        let mut lines: Vec<_> = records.iter().filter_map(line).collect();
        let n_more = lines.len().saturating_sub(GIVEN_UP_NAMED_MAX);
        lines.truncate(GIVEN_UP_NAMED_MAX);
        (lines, n_more)
    }
}

fn failure(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { text, .. } => text.clone(),
        Outcome::Panicked(text) => format!("panicked: {text}"),
        Outcome::TimedOut => "took longer than its timeout".into(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frequent_keys_are_busy_until_the_restart() {
        let reconciles = Reconciles::default();
        let (often, rarely) = (ObjectKey::new(Some("default"), "often"), ObjectKey::new(Some("default"), "rarely"));
        for _ in 0..BUSY_MIN {
            reconciles.record("site", &often, LastEnd::Done);
        }
        for _ in 1..BUSY_MIN {
            reconciles.record("site", &rarely, LastEnd::Done);
        }
        let lines = reconciles.frequent_keys();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("site default/often: reconciled 100 times until then; "), "{lines:?}");
        reconciles.restart();
        assert!(reconciles.frequent_keys().is_empty());
    }

    #[test]
    fn given_up_key_is_listed_until_next_run() {
        let (reconciles, key) = (Reconciles::default(), ObjectKey::new(Some("default"), "web"));
        reconciles.record("site", &key, LastEnd::GivenUp("no color".into()));
        assert_eq!(reconciles.given_up_keys(), ["site default/web: gave up: no color"]);
        assert!(reconciles.failing_keys().is_empty());
        reconciles.record("site", &key, LastEnd::Failed("no disk".into()));
        assert!(reconciles.given_up_keys().is_empty());
        assert_eq!(reconciles.failing_keys(), ["site default/web: the last time: no disk"]);
        reconciles.record("site", &key, LastEnd::Done);
        assert!(reconciles.failing_keys().is_empty());
        assert!(reconciles.given_up_keys().is_empty());
        for n in 0..=GIVEN_UP_NAMED_MAX {
            reconciles.record("site", &ObjectKey::new(None, &n.to_string()), LastEnd::GivenUp("no color".into()));
        }
        let lines = reconciles.given_up_keys();
        assert_eq!(lines.len(), GIVEN_UP_NAMED_MAX + 1);
        assert_eq!(lines.last().map(String::as_str), Some("more objects that were given up: 1"));
    }
}
