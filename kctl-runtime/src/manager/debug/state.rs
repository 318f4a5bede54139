//! The content of `/debug/state.json`: numbers, keys and errors, with a bound on each list. Never the content
//! of an object.
//!
//! The structs below are the JSON. Scripts may read it, but it has no stable form: fields may come and go with each
//! version. Times ending in `_seconds` are seconds as floating-point numbers, measured at the request.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    key::ObjectKey,
    manager::{
        View,
        health::Health,
        history::{History, LastError, PastReconcile, TEXT_LEN_MAX},
        lease::ElectionState,
    },
    manifest,
    queue::WorkQueue,
    source::Source,
    spec::ControllerSpec,
    text::truncate_text,
    worker::{CONFLICTS_BEFORE_WARNING, Decision, Outcome},
};

/// Maximum number of keys of one controller in a list: failing, given up or running.
pub(super) const KEYS_MAX: usize = 50;
/// Maximum number of reconciles in one response, the newest ones.
pub(super) const RECONCILES_SENT_MAX: usize = 500;

/// Maximum number of namespaces of one cache that are named.
const NAMES_SHOWN_MAX: usize = 10;

/// The document: each field is a table or a headline of the page.
#[derive(Serialize)]
pub(super) struct DebugState {
    app: String,
    /// Version of kctl, not of the program.
    version: &'static str,
    /// Time of the response, by the clock of the manager.
    now: Timestamp,
    /// Time since the manager started to serve the page.
    up_seconds: f64,
    /// `null` without leader election, and in a sharded program.
    election: Option<Election>,
    /// `null` unless the program is sharded.
    shards: Option<Shards>,
    /// `null` unless the program is a shard of a controller ring.
    ring: Option<Ring>,
    checks: Vec<CheckResult>,
    controllers: Vec<ControllerState>,
    caches: Vec<Cache>,
    /// The edges of `/debug/graph.svg`.
    wiring: Vec<Wire>,
    /// The newest reconciles after `after`, oldest first, at most [`RECONCILES_SENT_MAX`].
    reconciles: Vec<Reconcile>,
}

/// The election as this process sees it.
#[derive(Serialize)]
struct Election {
    /// Namespace and name of the Lease.
    lease: String,
    /// `leads`, `standby` or `over`.
    state: &'static str,
    holder: String,
}

/// A shard of a controller ring. `election` has the state of its Lease.
#[derive(Serialize)]
struct Ring {
    /// The name of the `ControllerRing`.
    name: String,
    shard: String,
    /// Number of objects that were handed over because the sharder asked for them.
    handed_over: u64,
}

/// The slots of a sharded program as this replica sees them.
#[derive(Serialize)]
struct Shards {
    /// The number of owned slots and the seat, for people.
    note: String,
    /// `object`, `namespace` or `namespace-range`.
    by: String,
    seat: Option<u32>,
    /// At most [`SLOTS_MAX`](crate::shard::SLOTS_MAX).
    slots: Vec<Slot>,
}

/// One slot: the holder of its Lease, and what this replica does with it.
#[derive(Serialize)]
struct Slot {
    number: u32,
    owner: String,
    state: String,
    /// How often it got another owner, as its Lease counts; `null` while the Lease is not known.
    moves: Option<u64>,
}

/// One check of `/readyz` or `/livez`.
#[derive(Serialize)]
struct CheckResult {
    name: String,
    ok: bool,
    text: String,
}

/// One controller: its declaration, and the numbers of its queue.
#[derive(Serialize)]
struct ControllerState {
    name: String,
    kind: String,
    /// File and line of the declaration.
    location: String,
    /// `concurrency` of the declaration.
    workers: usize,
    /// Keys that wait for a worker.
    ready: usize,
    /// Keys that wait for a time: a requeue or a backoff.
    delayed: usize,
    /// Keys that are being reconciled.
    running: usize,
    oldest_waiting_seconds: f64,
    longest_running_seconds: f64,
    /// Adds since the start that made a key ready, and waits that ended. An add of a ready key does not count.
    adds: u64,
    /// Adds since the start for a later time.
    retries: u64,
    /// The number of all failing keys; `failing` lists the first [`KEYS_MAX`].
    n_failing: usize,
    failing: Vec<Failing>,
    running_keys: Vec<Running>,
}

/// A key that fails or was given up.
#[derive(Serialize)]
struct Failing {
    key: String,
    /// Failures in a row, or conflicts of a key that meets many. Always 1 for a key that was given up, since its queue
    /// has reset the count.
    failures: u32,
    /// Seconds until the next attempt; `null` if the key is running, ready or given up.
    next_try_seconds: Option<f64>,
    given_up: bool,
    text: String,
}

/// A key that is being reconciled, and for how long.
#[derive(Serialize)]
struct Running {
    key: String,
    seconds: f64,
}

#[derive(Serialize)]
struct Cache {
    kind: String,
    group_version: String,
    /// Cluster, namespaces and selectors, or `all`.
    scope: String,
    synced: bool,
    objects: usize,
    /// Size of the stored JSON in bytes, without indexes and decoded objects.
    bytes: usize,
    /// Changes that arrived and are not applied yet.
    backlog: usize,
    /// Age of the oldest of them.
    lag_seconds: f64,
    /// A string, because JavaScript numbers cannot hold it.
    revision: String,
    /// Time since the API server sent anything; a minute is normal.
    silent_seconds: Option<f64>,
    /// Objects that cannot be decoded now; at most [`UNREADABLE_MAX`](crate::source::UNREADABLE_MAX).
    unreadable: usize,
    /// States that could not be decoded, since the start.
    undecodable: u64,
    /// The present failure of list or watch.
    failure: Option<String>,
}

/// One relation of a controller to a kind.
#[derive(Serialize)]
struct Wire {
    kind: String,
    relation: String,
    controller: String,
    /// `true` if changes of the kind cause reconciles; `false` for kinds that are only read.
    triggers: bool,
}

#[derive(Serialize)]
struct Reconcile {
    number: u64,
    at: Timestamp,
    seconds: f64,
    controller: String,
    key: String,
    reason: String,
    /// The trace ID that its log lines and requests carried.
    trace: String,
    /// `done`, `gone`, `conflict`, `failed`, `panicked` or `timed out`.
    outcome: &'static str,
    text: String,
    /// The next attempt, in words.
    next: String,
}

/// The sources of the state.
pub(super) struct Seen<'a> {
    pub(super) app: &'a str,
    pub(super) now: Timestamp,
    pub(super) since: Instant,
    pub(super) view: &'a View,
    pub(super) health: &'a Health,
    pub(super) history: &'a History,
}

impl Seen<'_> {
    /// Returns the current state, with the reconciles after the one with this number.
    ///
    /// It takes a lock per queue and cache, one after another, so the numbers are not of the same instant.
    pub(super) fn state(&self, after: u64) -> DebugState {
        let specs: Vec<ControllerSpec> = self.view.controllers().iter().map(|(spec, _)| spec.clone()).collect();
        let checks = self.health.ready().into_iter().chain(self.health.live());
        let mut checks: Vec<CheckResult> = checks
            .filter(|check| check.name != "ping")
            .map(|check| {
                let (Ok(text) | Err(text)) = &check.result;
                CheckResult { ok: check.result.is_ok(), name: check.name, text: truncate(text) }
            })
            .collect();
        checks.sort_by(|a, b| a.name.cmp(&b.name).then(a.ok.cmp(&b.ok)));
        // A check of both probes is shown once, and failing results are sorted first.
        checks.dedup_by(|second, first| second.name == first.name);
        DebugState {
            app: self.app.into(),
            version: env!("CARGO_PKG_VERSION"),
            now: self.now,
            up_seconds: self.since.elapsed().as_secs_f64(),
            election: self.election(),
            shards: self.shards(),
            ring: self.ring(),
            checks,
            controllers: self.view.controllers().iter().map(|(spec, queue)| self.controller(spec, queue)).collect(),
            caches: self.caches(),
            wiring: manifest::edge_rows(&specs)
                .map(|(kind, relation, controller, triggers)| Wire { kind, relation, controller, triggers })
                .collect(),
            reconciles: self.history.after(after, RECONCILES_SENT_MAX).into_iter().map(reconcile).collect(),
        }
    }

    fn election(&self) -> Option<Election> {
        let leadership = self.view.leadership().filter(|_| self.view.shards().is_none())?;
        let state = match leadership.state() {
            ElectionState::Leading(_) => "leads",
            ElectionState::Standby => "standby",
            ElectionState::Over(_) => "over",
        };
        let config = leadership.config();
        let lease = format!("{}/{}", config.namespace, config.name);
        Some(Election { lease, state, holder: leadership.holder() })
    }

    fn ring(&self) -> Option<Ring> {
        let ring = self.view.controller_ring()?;
        let (name, shard) = (ring.config().ring().to_owned(), ring.config().shard().to_owned());
        Some(Ring { name, shard, handed_over: ring.n_handed_over() })
    }

    fn shards(&self) -> Option<Shards> {
        let shards = self.view.shards()?;
        let slots = shards.slots().into_iter();
        let slots = slots.map(|one| Slot { number: one.slot, owner: one.owner, state: one.state, moves: one.moves });
        Some(Shards {
            note: shards.note(),
            by: shards.config().slots().shard_by().to_string(),
            seat: shards.seat(),
            slots: slots.collect(),
        })
    }

    /// Returns all open caches, declared and opened at run time.
    fn caches(&self) -> Vec<Cache> {
        let mut sources = self.view.sources_now();
        sources.sort_by(|a, b| a.config().cmp(b.config()));
        sources.iter().map(|source| cache(source)).collect()
    }

    fn controller(&self, spec: &ControllerSpec, queue: &WorkQueue<ObjectKey>) -> ControllerState {
        let (stats, keys) = (queue.stats(), queue.keys(KEYS_MAX));
        let given_up = self.history.given_up(&spec.name);
        let n_failing = keys.n_failing + given_up.len();
        let tried = keys.failing.into_iter().map(|(key, failures, wait)| {
            let text = self.history.failure(&spec.name, &key).map(|failure| failure.text).unwrap_or_default();
            let next_try_seconds = wait.map(|wait| wait.as_secs_f64());
            Failing { key: key.to_string(), failures, next_try_seconds, given_up: false, text }
        });
        let over = given_up.into_iter().map(|LastError { key, text, .. }| Failing {
            key: key.to_string(),
            failures: 1,
            next_try_seconds: None,
            given_up: true,
            text,
        });
        let running = keys.running.into_iter();
        ControllerState {
            name: spec.name.clone(),
            kind: spec.primary.kind.to_string(),
            location: spec.location.rsplit_once(" at ").map_or(&*spec.location, |(_, file)| file).to_owned(),
            workers: spec.concurrency,
            ready: stats.depth,
            delayed: stats.delayed,
            running: stats.processing,
            oldest_waiting_seconds: stats.oldest_waiting.as_secs_f64(),
            longest_running_seconds: stats.longest_running.as_secs_f64(),
            adds: stats.adds,
            retries: stats.retries,
            n_failing,
            failing: tried.chain(over).take(KEYS_MAX).collect(),
            running_keys: running
                .map(|(key, took)| Running { key: key.to_string(), seconds: took.as_secs_f64() })
                .collect(),
        }
    }
}

/// Joins the first names, and counts the rest.
fn first_names(names: &[String]) -> String {
    let (shown, rest) = names.split_at(names.len().min(NAMES_SHOWN_MAX));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    shown.join(", ") + &more
}

fn cache(source: &Source) -> Cache {
    let (config, store, health) = (source.config(), source.store(), source.health());
    let parts = [
        ("cluster ", config.cluster.clone()),
        ("namespace ", first_names(&config.namespaces)),
        ("labels ", config.labels.clone()),
        ("fields ", config.fields.clone()),
        ("slots of this replica, selected by ", source.selected_by().map_or_else(String::new, |by| by.to_string())),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(_, value)| !value.is_empty()).map(|(part, value)| format!("{part}{value}")).collect();
    Cache {
        kind: config.kind.to_string(),
        group_version: config.kind.api_version(),
        scope: if parts.is_empty() { "all".into() } else { parts.join("; ") },
        synced: store.is_synced(),
        objects: store.len(),
        bytes: store.n_bytes(),
        backlog: store.backlog(),
        lag_seconds: store.lag().as_secs_f64(),
        revision: store.revision().to_string(),
        silent_seconds: source.time_since_message().map(|silence| silence.as_secs_f64()),
        unreadable: source.num_unreadable(),
        undecodable: health.undecodable,
        failure: health.failure.map(|failure| truncate(&failure.to_string())),
    }
}

/// Returns the row of a finished reconcile, with its result and next attempt in words.
fn reconcile(PastReconcile { number, at, report }: PastReconcile) -> Reconcile {
    let (outcome, text) = match &report.outcome {
        Outcome::Done(_) => ("done", String::new()),
        Outcome::Vanished => ("gone", String::new()),
        Outcome::Failed { text, .. } if matches!(report.decision, Decision::Outdated { .. }) => {
            ("conflict", text.clone())
        }
        Outcome::Failed { text, .. } => ("failed", text.clone()),
        Outcome::Panicked(text) => ("panicked", text.clone()),
        Outcome::TimedOut => ("timed out", String::new()),
    };
    let next = match &report.decision {
        Decision::Forget => "at the next event or resync".to_owned(),
        Decision::RequeueAfter(wait) => format!("in {}, as asked", format_millis(*wait)),
        Decision::RetryAfter(wait) => format!("again in {}", format_millis(*wait)),
        Decision::Outdated { in_a_row } if *in_a_row <= CONFLICTS_BEFORE_WARNING => "again with the newer state".into(),
        Decision::Outdated { in_a_row } => format!("again, with backoff: {in_a_row} conflicts in a row"),
        Decision::RateLimited => "again, with backoff".into(),
        Decision::Drop => "given up until the next event or resync".into(),
    };
    Reconcile {
        number,
        at,
        seconds: report.took.as_secs_f64(),
        controller: report.controller,
        key: report.key.to_string(),
        reason: report.reason.to_string(),
        trace: report.trace.to_string(),
        outcome,
        text,
        next,
    }
}

/// Prints a wait in whole milliseconds.
fn format_millis(wait: Duration) -> String {
    format!("{:?}", Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
}

/// Cuts an error for the page.
fn truncate(text: &str) -> String {
    let mut text = text.to_owned();
    truncate_text(&mut text, TEXT_LEN_MAX);
    text
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use k8s_openapi::api::core::v1::Pod;
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;
    use crate::source::WatchConfig;

    #[tokio::test]
    async fn unreadable_object_read_twice_is_one() {
        let server = service_fn(|_request: http::Request<Body>| async {
            let meta = r#"{"name":"x","namespace":"a","uid":"1","resourceVersion":"9"}"#;
            let item = format!(r#"{{"metadata":{meta},"spec":false}}"#);
            let list = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{item}]}}"#);
            Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes())))
        });
        let source = Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default());
        let _readers = source.view::<Pod>();
        for n_states in 1..=2 {
            source.refresh_object(Some("a"), "x", "1").await.unwrap();
            let Cache { unreadable, undecodable, .. } = cache(&source);
            assert_eq!((unreadable, undecodable), (1, n_states));
        }
    }

    #[test]
    fn of_many_namespaces_the_first_ones_are_named() {
        let names = |n: usize| (0..n).map(|n| format!("n{n}")).collect::<Vec<_>>();
        assert_eq!(first_names(&names(0)), "");
        assert_eq!(first_names(&names(10)), "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9");
        assert_eq!(first_names(&names(500)), "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 490 more");
    }
}
