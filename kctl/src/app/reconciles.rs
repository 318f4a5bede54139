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
/// Number of consecutive rejections of a key's requests as invalid, after which no retry is expected to help. The first
/// retry may read a newer state of the cache.
#[cfg(feature = "dev")]
const INVALID_IN_A_ROW: u32 = 3;
/// Maximum number of keys that are named as given up, and of those that are named as failing.
const GIVEN_UP_NAMED_MAX: usize = 20;

/// The records of all keys, by controller and key. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Reconciles(Arc<Mutex<BTreeMap<(String, ObjectKey), KeyRecord>>>);

#[derive(Default)]
struct KeyRecord {
    /// Number of reconciles since the last [`Reconciles::restart`].
    n: u64,
    /// Number of consecutive ends with [`LastEnd::Invalid`] since then: objects that were applied in between may have
    /// made the request valid.
    n_invalid: u32,
    last: LastEnd,
}

/// The end of a key's last reconcile, with the message of a failure.
#[derive(Default)]
enum LastEnd {
    #[default]
    Done,
    /// It is tried again.
    Failed(String),
    /// It is tried again, although the API server rejected the content of a request.
    Invalid(String),
    /// It is not tried again by itself.
    GivenUp(String),
}

impl Reconciles {
    /// Records the end of a reconcile.
    pub(crate) fn record_end(&self, report: &Report) {
        let last = match (&report.decision, &report.outcome) {
            (Decision::Drop, outcome) => LastEnd::GivenUp(failure(outcome)),
            (_, outcome @ Outcome::Failed { invalid: true, .. }) => LastEnd::Invalid(failure(outcome)),
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
        record.n_invalid = if matches!(last, LastEnd::Invalid(_)) { record.n_invalid.saturating_add(1) } else { 0 };
        record.last = last;
    }

    /// Counts from zero again.
    pub(crate) fn restart(&self) {
        for record in self.0.lock().values_mut() {
            record.n = 0;
            record.n_invalid = 0;
        }
    }

    /// Adds lines about the keys that keep an app busy: reconciled very often, failing, or given up.
    ///
    /// The last failure of a key continues the line of the key, such as `site default/web: failed 3 times in a row`.
    pub(crate) fn add_busy_lines(&self, lines: &mut Vec<String>) {
        lines.extend(self.frequent_keys());
        for (subject, text) in self.failing_keys() {
            let begin = format!("{subject}: failed ");
            if let Some(line) = lines.iter_mut().find(|line| line.starts_with(&begin)) {
                line.push_str(", the last time: ");
                line.push_str(&text);
            } else {
                lines.push(format!("{subject}: the last time: {text}"));
            }
        }
        lines.extend(self.given_up_keys());
    }

    /// Returns `true` if the last requests of a key were rejected as invalid, so that no retry is expected to help.
    #[cfg(feature = "dev")]
    pub(super) fn is_invalid(&self, controller: &str, key: &ObjectKey) -> bool {
        let records = self.0.lock();
        let record = records.get(&(controller.to_owned(), key.clone()));
        record.is_some_and(|record| record.n_invalid >= INVALID_IN_A_ROW)
    }

    /// Returns `true` if [`is_invalid`](Self::is_invalid) returns `true` for a key.
    #[cfg(feature = "dev")]
    pub(super) fn has_invalid_keys(&self) -> bool {
        self.0.lock().values().any(|record| record.n_invalid >= INVALID_IN_A_ROW)
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
        let (keys, n_more) = self.ends_of(|last| match last {
            LastEnd::GivenUp(text) => Some(text),
            LastEnd::Done | LastEnd::Failed(_) | LastEnd::Invalid(_) => None,
        });
        let mut lines: Vec<_> = keys.iter().map(|(subject, text)| format!("{subject}: gave up: {text}")).collect();
        if n_more > 0 {
            lines.push(format!("more objects that were given up: {n_more}"));
        }
        lines
    }

    /// Returns the keys that fail and are tried again, as `CONTROLLER KEY`, with the message of the last failure.
    fn failing_keys(&self) -> Vec<(String, String)> {
        let failing = self.ends_of(|last| match last {
            LastEnd::Failed(text) | LastEnd::Invalid(text) => Some(text),
            LastEnd::Done | LastEnd::GivenUp(_) => None,
        });
        failing.0
    }

    /// Returns at most [`GIVEN_UP_NAMED_MAX`] keys with the text that `text_of` returns, and the number of the others.
    fn ends_of(&self, text_of: impl Fn(&LastEnd) -> Option<&String>) -> (Vec<(String, String)>, usize) {
        let records = self.0.lock();
        let end = |((controller, key), record): (&(String, ObjectKey), &KeyRecord)| {
            text_of(&record.last).map(|text| (format!("{controller} {key}"), text.clone()))
        };
        let mut ends: Vec<_> = records.iter().filter_map(end).collect();
        let n_more = ends.len().saturating_sub(GIVEN_UP_NAMED_MAX);
        ends.truncate(GIVEN_UP_NAMED_MAX);
        (ends, n_more)
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
        assert_eq!(reconciles.failing_keys(), [("site default/web".to_owned(), "no disk".to_owned())]);
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

    #[test]
    fn last_failure_continues_the_line_of_its_key() {
        let (reconciles, key) = (Reconciles::default(), ObjectKey::new(Some("default"), "web"));
        reconciles.record("site", &key, LastEnd::Failed("no disk".into()));
        let mut lines = vec!["site default/web: failed 2 times in a row".to_owned()];
        reconciles.add_busy_lines(&mut lines);
        assert_eq!(lines, ["site default/web: failed 2 times in a row, the last time: no disk"]);
        let mut lines = vec!["site default/web-2: failed 2 times in a row".to_owned()];
        reconciles.add_busy_lines(&mut lines);
        assert_eq!(lines[1..], ["site default/web: the last time: no disk"]);
    }

    #[cfg(feature = "dev")]
    #[test]
    fn key_is_invalid_after_consecutive_rejections() {
        let (reconciles, key) = (Reconciles::default(), ObjectKey::new(Some("default"), "web"));
        let record = |last: LastEnd| reconciles.record("site", &key, last);
        let invalid = || LastEnd::Invalid("replicas: must not be negative".into());
        for n in 1..=INVALID_IN_A_ROW {
            record(invalid());
            let is_invalid = n >= INVALID_IN_A_ROW;
            assert_eq!((reconciles.is_invalid("site", &key), reconciles.has_invalid_keys()), (is_invalid, is_invalid));
        }
        reconciles.restart();
        assert!(!reconciles.has_invalid_keys(), "a retry may succeed with the objects that were applied last");
        for end in [LastEnd::Failed("no disk".into()), LastEnd::Done, LastEnd::GivenUp("no color".into())] {
            record(end);
            record(invalid());
            assert!(!reconciles.has_invalid_keys(), "another end begins the count again");
        }
    }
}
