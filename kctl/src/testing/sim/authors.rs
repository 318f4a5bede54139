//! The running reconciles: finds a key that runs twice at once, and the process, the controller and the key behind a
//! request, by the trace that the request carries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kctl_runtime::key::ObjectKey;

/// A running reconcile: its process and its trace.
struct RunningReconcile {
    process: String,
    trace: String,
}

/// The running reconciles, and the number of requests per controller.
#[derive(Default)]
pub(super) struct Authors {
    /// By controller and key.
    running: BTreeMap<(String, String), RunningReconcile>,
    /// Reconciles of frozen processes whose key another process reconciles since, by controller and key. Two
    /// reconciles of the key do not run at once: no code of a frozen process runs.
    overtaken: Vec<((String, String), RunningReconcile)>,
    /// The processes that are frozen, or whose tasks have not all continued.
    frozen: BTreeSet<String>,
    /// The last reconciles that ended, with controller and key, oldest first: their requests may still arrive.
    /// Invariant: at most [`ENDED_MAX`].
    ended: VecDeque<(RunningReconcile, (String, String))>,
    /// By controller, verb and resource.
    n_requests: BTreeMap<(String, &'static str, String), u64>,
}

/// Maximum number of ended reconciles that are remembered; the oldest is forgotten.
const ENDED_MAX: usize = 256;
/// Name for requests that no running reconcile sent.
const OUTSIDE: &str = "outside of a reconcile";

impl Authors {
    /// Records the start of a reconcile. Returns the process that is still reconciling the same
    /// key, if any.
    ///
    /// A process that continues after a freeze may begin a reconcile before its election finds that the Lease has expired.
    /// That is not a finding: only its writes are judged.
    pub(super) fn begin(&mut self, process: &str, controller: &str, key: &ObjectKey, trace: &str) -> Option<String> {
        let reconcile = (controller.to_owned(), key.to_string());
        let begun = RunningReconcile { process: process.into(), trace: trace.into() };
        let other = self.running.remove(&reconcile);
        let is_overtaken =
            other.as_ref().is_some_and(|other| other.process != process && self.frozen.contains(process));
        let (running, before) = if is_overtaken { (other?, Some(begun)) } else { (begun, other) };
        let current = running.process.clone();
        self.running.insert(reconcile.clone(), running);
        let before = before?;
        if before.process != current && self.frozen.contains(&before.process) {
            self.overtaken.push((reconcile, before));
            return None;
        }
        Some(before.process)
    }

    /// Records the end of a reconcile. Returns `false` if another process has begun to reconcile the key since.
    pub(super) fn end(&mut self, process: &str, controller: &str, key: &ObjectKey) -> bool {
        let reconcile = (controller.to_owned(), key.to_string());
        let overtaken = self.overtaken.iter().position(|(of, one)| *of == reconcile && one.process == process);
        if let Some(at) = overtaken {
            let (reconcile, ended) = self.overtaken.remove(at);
            self.keep(ended, reconcile);
            return false;
        }
        if let Some(running) = self.running.remove(&reconcile) {
            self.keep(running, reconcile);
        }
        true
    }

    /// Records that no code of a process runs until [`thaw`](Self::thaw).
    pub(super) fn freeze(&mut self, process: &str) {
        self.frozen.insert(process.into());
    }

    /// Records that all tasks of a process that was frozen have continued.
    pub(super) fn thaw(&mut self, process: &str) {
        self.frozen.remove(process);
    }

    pub(super) fn process_ended(&mut self, process: &str) {
        self.frozen.remove(process);
        let (ended, running) =
            std::mem::take(&mut self.running).into_iter().partition(|(_, one)| one.process == process);
        self.running = running;
        let ended: BTreeMap<_, RunningReconcile> = ended;
        let overtaken = self.overtaken.extract_if(.., |(_, one)| one.process == process).collect::<Vec<_>>();
        for (reconcile, running) in ended.into_iter().chain(overtaken) {
            self.keep(running, reconcile);
        }
        debug_assert!(self.reconciles_of(process).next().is_none(), "a process that has ended runs nothing");
    }

    fn keep(&mut self, ended: RunningReconcile, reconcile: (String, String)) {
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((ended, reconcile));
        debug_assert!(self.ended.len() <= ENDED_MAX, "the oldest is forgotten at the bound");
    }

    /// Returns the process with the controller and the key.
    ///
    /// A request without a trace, for example one that bypasses the context, is attributed to the
    /// reconciles that run in its process.
    pub(super) fn author(&self, process: &str, trace: &str) -> String {
        if let Some((controller, key)) = self.find_by_trace(process, trace) {
            return format!("{process}, {controller} {key}");
        }
        if let Some((controller, key)) = self.find_ended(process, trace) {
            return format!("{process}, {controller} {key} (a reconcile that has ended)");
        }
        let names: Vec<_> =
            self.reconciles_of(process).map(|((controller, key), _)| format!("{controller} {key}")).collect();
        match names.as_slice() {
            [] => format!("{process}, {OUTSIDE}"),
            [one] => format!("{process}, {one}"),
            several => format!("{process}, one of {}", several.join(", ")),
        }
    }

    /// Returns the key of the reconcile that sent a request, also if it has ended. `None` without a trace.
    pub(super) fn key(&self, process: &str, trace: &str) -> Option<&str> {
        let reconcile = self.find_by_trace(process, trace).or_else(|| self.find_ended(process, trace));
        reconcile.map(|(_controller, key)| key.as_str())
    }

    /// Counts a request.
    pub(super) fn count_request(&mut self, process: &str, trace: &str, verb: &'static str, resource: &str) {
        let controller = self.find_by_trace(process, trace).map_or(OUTSIDE, |(controller, _)| controller).to_owned();
        *self.n_requests.entry((controller, verb, resource.to_owned())).or_default() += 1;
    }

    /// Describes the most frequent kind of request.
    pub(super) fn most_frequent_request(&self) -> String {
        let most = self.n_requests.iter().max_by_key(|(_, n)| **n);
        let text = |((controller, verb, resource), n): (&(String, &str, String), &u64)| {
            format!("{n} of them {verb} {resource}, by {controller}")
        };
        most.map(text).unwrap_or_default()
    }

    fn reconciles_of(&self, process: &str) -> impl Iterator<Item = (&(String, String), &RunningReconcile)> {
        let overtaken = self.overtaken.iter().map(|(reconcile, running)| (reconcile, running));
        self.running.iter().chain(overtaken).filter(move |(_, running)| running.process == process)
    }

    /// Returns the controller and the key of a reconcile that has ended.
    fn find_ended(&self, process: &str, trace: &str) -> Option<&(String, String)> {
        let is_named = |ended: &RunningReconcile| !trace.is_empty() && ended.trace == trace && ended.process == process;
        self.ended.iter().rev().find(|(ended, _)| is_named(ended)).map(|(_, reconcile)| reconcile)
    }

    fn find_by_trace(&self, process: &str, trace: &str) -> Option<&(String, String)> {
        let mut named = self.reconciles_of(process).filter(|(_, running)| !trace.is_empty() && running.trace == trace);
        named.next().map(|(reconcile, _)| reconcile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn author_is_named_by_trace_or_process() {
        let key = |name: &str| ObjectKey::new(Some("default"), name);
        let mut authors = Authors::default();
        authors.begin("app-0.1", "labels", &key("a"), "t1");
        authors.begin("app-0.1", "labels", &key("b"), "t2");
        authors.begin("app-1.1", "labels", &key("c"), "t3");
        let cases = [
            ("app-0.1", "t2", "app-0.1, labels default/b"),
            ("app-0.1", "", "app-0.1, one of labels default/a, labels default/b"),
            ("app-1.1", "t1", "app-1.1, labels default/c"),
            ("app-2.1", "t1", "app-2.1, outside of a reconcile"),
        ];
        for (process, trace, expected) in cases {
            assert_eq!(authors.author(process, trace), expected);
        }
        assert!(authors.end("app-0.1", "labels", &key("a")));
        assert_eq!(authors.author("app-0.1", ""), "app-0.1, labels default/b");
        assert_eq!(authors.author("app-0.1", "t1"), "app-0.1, labels default/a (a reconcile that has ended)");
        assert_eq!(authors.author("app-1.1", "t1"), "app-1.1, labels default/c", "the trace is of another process");
        authors.process_ended("app-0.1");
        assert_eq!(authors.author("app-0.1", "t2"), "app-0.1, labels default/b (a reconcile that has ended)");
        assert_eq!(authors.author("app-0.1", ""), "app-0.1, outside of a reconcile");
        for n in 0..ENDED_MAX {
            authors.begin("app-1.1", "labels", &key("d"), &format!("later-{n}"));
            authors.end("app-1.1", "labels", &key("d"));
        }
        assert_eq!(authors.author("app-0.1", "t2"), "app-0.1, outside of a reconcile", "too many have ended since");
    }

    #[test]
    fn reconcile_of_a_frozen_process_is_overtaken() {
        let key = ObjectKey::new(Some("default"), "a");
        let mut authors = Authors::default();
        authors.begin("app-0.1", "labels", &key, "t1");
        authors.freeze("app-0.1");
        assert_eq!(authors.begin("app-1.1", "labels", &key, "t2"), None);
        assert_eq!(authors.key("app-0.1", "t1"), Some("default/a"), "its writes are judged when it continues");
        assert_eq!(authors.begin("app-2.1", "labels", &key, "t3"), Some("app-1.1".into()));
        assert!(!authors.end("app-0.1", "labels", &key), "another process reconciles the key now");
        assert_eq!(authors.begin("app-0.1", "labels", &key, "t4"), None, "its election has not continued yet");
        assert_eq!(authors.author("app-0.1", "t4"), "app-0.1, labels default/a");
        assert!(!authors.end("app-0.1", "labels", &key));
        authors.thaw("app-0.1");
        assert_eq!(authors.begin("app-0.1", "labels", &key, "t5"), Some("app-2.1".into()));
    }

    #[test]
    fn most_frequent_request_names_controller_verb_and_resource() {
        let mut authors = Authors::default();
        authors.begin("app-0.1", "labels", &ObjectKey::new(None, "a"), "t1");
        assert_eq!(authors.most_frequent_request(), "");
        for (trace, verb) in [("t1", "get"), ("", "list"), ("t1", "get"), ("t1", "list")] {
            authors.count_request("app-0.1", trace, verb, "configmaps");
        }
        assert_eq!(authors.most_frequent_request(), "2 of them get configmaps, by labels");
    }
}
