//! Detects hot loops under simulated time, which does not advance while a task can run: without a bound a test would
//! hang.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use kctl_apiserver::RequestRecord;
use kctl_runtime::{
    key::ObjectKey,
    trace::Trace,
    worker::{Outcome, Report},
};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

/// Maximum number of reconciles of one key at one simulated moment. The count restarts after each
/// write by another client.
pub(crate) const RECONCILES_AT_ONCE_MAX: u32 = 1_000;
/// The same bound without restarts, for a test that answers each write of the app with a write.
pub(crate) const RECONCILES_AMID_WRITES_MAX: u32 = 10_000;
/// Maximum number of requests of one reconcile, or of the caches for one kind, at one simulated
/// moment.
pub(crate) const REQUESTS_AT_ONCE_MAX: u32 = 10_000;
/// Maximum number of different requests that the error names.
const REQUESTS_NAMED_MAX: usize = 5;
/// Maximum number of other keys that the error names.
const OTHERS_NAMED_MAX: usize = 5;
/// Minimum number of reconciles for a key to be reported with a hot loop.
const OTHER_RECONCILES_MIN: u32 = 100;

/// Counts reconciles and requests of an app at each moment of Tokio's clock.
///
/// On a clock that runs, no two moments are equal, so nothing is found. Clones share the counts.
#[derive(Clone)]
pub(crate) struct HotLoops {
    user: Arc<str>,
    counts: Arc<Mutex<Counts>>,
    found: Arc<watch::Sender<Option<String>>>,
}

struct Counts {
    moment: Instant,
    keys: HashMap<ReconcileKey, KeyCounts>,
    /// Running reconciles by trace.
    running: HashMap<String, Run>,
    /// Number of lists and watches by caches, by verb and resource.
    outside: HashMap<(&'static str, String), u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReconcileKey {
    controller: String,
    key: ObjectKey,
}

/// The reconciles of one key at this moment.
#[derive(Default)]
struct KeyCounts {
    /// Number of reconciles since another client wrote.
    n: u32,
    n_amid_writes: u32,
    /// Description of the last reconcile.
    last: String,
}

/// A running reconcile and its requests.
struct Run {
    reconcile_key: ReconcileKey,
    n_requests: u32,
    /// The first different ones, in words. Invariant: at most [`REQUESTS_NAMED_MAX`].
    requests: Vec<String>,
}

impl HotLoops {
    /// Creates counters for the requests of this user.
    pub(crate) fn new(user: &str) -> Self {
        let (moment, keys) = (Instant::now(), HashMap::new());
        let counts = Counts { moment, keys, running: HashMap::new(), outside: HashMap::new() };
        Self { user: user.into(), counts: Arc::new(Mutex::new(counts)), found: Arc::new(watch::Sender::new(None)) }
    }

    /// Waits for the first hot loop, and returns its description.
    ///
    /// # Cancel safety
    /// A finding is kept: a later call returns it.
    pub(crate) async fn wait_for_loop(&self) -> String {
        let mut found = self.found.subscribe();
        // The sender is a field of `self`, so it outlives this wait.
        let first = found.wait_for(Option::is_some).await;
        first.ok().and_then(|text| text.clone()).unwrap_or_default()
    }

    /// Records the start of a reconcile.
    pub(crate) fn begins(&self, controller: &str, key: &ObjectKey, trace: Trace) {
        let mut counts = self.counts.lock();
        counts.reset_if_time_advanced();
        let reconcile_key = ReconcileKey { controller: controller.to_owned(), key: key.clone() };
        counts.running.insert(trace.to_string(), Run { reconcile_key, n_requests: 0, requests: Vec::new() });
    }

    /// Records the end of a reconcile, and reports a hot loop at the bound.
    pub(crate) fn record_end(&self, report: &Report) {
        let mut counts = self.counts.lock();
        counts.reset_if_time_advanced();
        let Some(run) = counts.running.remove(&report.trace.to_string()) else { return };
        let count = counts.keys.entry(run.reconcile_key.clone()).or_default();
        count.n += 1;
        count.n_amid_writes += 1;
        count.last = describe_reconcile(&run, &report.outcome);
        let ((n @ RECONCILES_AT_ONCE_MAX.., _) | (_, n @ RECONCILES_AMID_WRITES_MAX..)) =
            (count.n, count.n_amid_writes)
        else {
            return;
        };
        let ReconcileKey { controller, key } = &run.reconcile_key;
        let mut text = format!(
            "hot loop: `{controller}` reconciled {key} {n} times while simulated time stood still; the app was stopped\n  \
             the last time it {}; it was enqueued by: {}",
            count.last, report.reason
        );
        counts.add_others(&run.reconcile_key, &mut text);
        text += "\nhelp: write only what differs, and requeue after a time above zero";
        self.find(text);
    }

    /// Records a request that a server has answered.
    pub(crate) fn record_request(&self, request: &RequestRecord) {
        let mut counts = self.counts.lock();
        counts.reset_if_time_advanced();
        if *request.user != *self.user {
            if request.is_accepted_write() {
                counts.keys.values_mut().for_each(|count| count.n = 0);
            }
            return;
        }
        let hot = match counts.running.get_mut(&request.trace) {
            Some(run) => {
                run.n_requests += 1;
                let what = request_text(request);
                if run.requests.len() < REQUESTS_NAMED_MAX && !run.requests.contains(&what) {
                    run.requests.push(what);
                }
                debug_assert!(run.requests.len() <= REQUESTS_NAMED_MAX, "the error names no more");
                let ReconcileKey { controller, key } = &run.reconcile_key;
                (run.n_requests >= REQUESTS_AT_ONCE_MAX).then(|| {
                    let requests = run.requests.join(", ");
                    format!(
                        "one reconcile of {key} by `{controller}` sent {REQUESTS_AT_ONCE_MAX} requests ({requests})"
                    )
                })
            }
            None if ["list", "watch"].contains(&request.verb) => {
                let n = counts.outside.entry((request.verb, request.resource.clone())).or_default();
                *n += 1;
                (*n >= REQUESTS_AT_ONCE_MAX)
                    .then(|| format!("{REQUESTS_AT_ONCE_MAX} requests {}", request_text(request)))
            }
            None => None,
        };
        if let Some(hot) = hot {
            self.find(format!("hot loop: {hot} while simulated time stood still; the app was stopped"));
        }
    }

    fn find(&self, text: String) {
        self.found.send_if_modified(|found| {
            let is_first = found.is_none();
            found.get_or_insert(text);
            is_first
        });
    }
}

impl Counts {
    /// Resets the counts when simulated time has advanced.
    fn reset_if_time_advanced(&mut self) {
        let now = Instant::now();
        if self.moment != now {
            self.moment = now;
            self.keys.clear();
            self.outside.clear();
            self.running.values_mut().for_each(|run| run.n_requests = 0);
        }
    }

    /// Adds other keys that may be part of the loop, for example of a second controller that
    /// overwrites the same field.
    fn add_others(&self, found: &ReconcileKey, text: &mut String) {
        let often = self.keys.iter().filter(|(id, count)| *id != found && count.n_amid_writes >= OTHER_RECONCILES_MIN);
        let mut others: Vec<_> = often.collect();
        let name = |id: &ReconcileKey| (id.controller.clone(), id.key.to_string());
        others.sort_by_cached_key(|(id, count)| (std::cmp::Reverse(count.n_amid_writes), name(id)));
        for (ReconcileKey { controller, key }, count) in others.into_iter().take(OTHERS_NAMED_MAX) {
            let (n, last) = (count.n_amid_writes, &count.last);
            let line =
                format_args!("\n  at the same time `{controller}` reconciled {key} {n} times: the last time it {last}");
            // Writing to a string does not fail.
            let _written = text.write_fmt(line);
        }
    }
}

/// Describes the requests and the outcome of a reconcile, for the error.
fn describe_reconcile(run: &Run, outcome: &Outcome) -> String {
    let sent = match (run.requests.as_slice(), run.n_requests) {
        ([], _) => "sent no request".to_owned(),
        (requests, n) if n as usize > requests.len() => format!("sent {n} requests, first {}", requests.join(", ")),
        (requests, _) => format!("sent {}", requests.join(", ")),
    };
    let end = match outcome {
        Outcome::Done(action) => match action.requeue_after() {
            Some(wait) => format!("asked for a requeue after {wait:?}"),
            None => "awaits the next change".into(),
        },
        Outcome::Vanished => "found no such object".into(),
        Outcome::Failed { text, .. } => format!("failed: {text}"),
        Outcome::Panicked(text) => format!("panicked: {text}"),
        Outcome::TimedOut => "took longer than its timeout".into(),
        other => format!("{other:?}"),
    };
    format!("{sent} and {end}")
}

fn request_text(request: &RequestRecord) -> String {
    let RequestRecord { verb, resource, namespace, name, rejected_name, code, .. } = request;
    let name = if name.is_empty() { rejected_name } else { name };
    let full_name = match (namespace.as_str(), name.as_str()) {
        ("", name) => name.to_owned(),
        (namespace, "") => format!("in {namespace}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let outcome = if *code >= 400 { format!(" (answered {code})") } else { String::new() };
    format!("{verb} {resource} {full_name}").trim_end().to_owned() + &outcome
}
