//! Metrics under the names and labels of controller-runtime and client-go, so that existing dashboards work.
//!
//! Durations and counts are recorded as they happen; sizes and states are read at each scrape. Label
//! values come from the declaration (controllers, kinds, HTTP methods), never from names of objects, so the
//! number of series is bounded.
//!
//! ```
//! use kctl_runtime::manager::metrics::{Format, Metrics, prometheus_client::metrics::counter::Counter};
//!
//! let metrics = Metrics::default();
//! let backups = Counter::<u64>::default();
//! metrics.register(|registry| registry.register("backups", "Finished backups", backups.clone()));
//! backups.inc();
//!
//! let text = metrics.text(Format::Prometheus);
//! assert!(text.contains("backups_total 1\n"));
//! ```
//!
//! # Reconciles and queues
//!
//! | Name | Labels | Meaning |
//! |---|---|---|
//! | `controller_runtime_reconcile_total` | `controller`, `result` | reconciles: `success`, `error`, `requeue_after`, `conflict` |
//! | `controller_runtime_reconcile_errors_total` | `controller` | failed ones, with panics and timeouts |
//! | `controller_runtime_terminal_reconcile_errors_total` | `controller` | terminal errors: their keys are given up at once, whatever `retries` says |
//! | `controller_runtime_reconcile_panics_total` | `controller` | panics |
//! | `controller_runtime_reconcile_timeouts_total` | `controller` | reconciles beyond their timeout |
//! | `controller_runtime_reconcile_time_seconds` | `controller` | histogram of durations |
//! | `controller_runtime_active_workers` | `controller` | reconciles that run now |
//! | `controller_runtime_max_concurrent_reconciles` | `controller` | `concurrency` of the declaration |
//! | `kctl_failing_keys` | `controller` | keys that are retried after a failure or after many conflicts, and keys that were given up |
//! | `workqueue_depth` | `name`, `controller`, `priority` | ready keys |
//! | `workqueue_adds_total`, `workqueue_retries_total` | `name`, `controller` | times that a key became ready; adds for a later time, after a failure, a conflict or a requeue |
//! | `workqueue_queue_duration_seconds` | `name`, `controller` | histogram of the time until a worker takes a key |
//! | `workqueue_work_duration_seconds` | `name`, `controller` | histogram of the time that a worker has it |
//! | `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds` | `name`, `controller` | running reconciles: their sum, and the longest |
//! | `kctl_workqueue_oldest_waiting_seconds` | `name`, `controller` | age of the oldest ready key |
//! | `kctl_workqueue_delayed` | `name`, `controller` | keys that wait for a time |
//!
//! # Caches
//!
//! `name` tells caches of one kind apart by cluster, namespaces and selectors.
//!
//! | Name | Labels | Meaning |
//! |---|---|---|
//! | `kctl_cache_objects`, `kctl_cache_bytes` | `name`, `group`, `version`, `resource` | objects, and the size of their JSON after compression |
//! | `kctl_cache_users` | the same | controllers and watches that share the cache |
//! | `kctl_cache_synced`, `kctl_source_failing` | the same | 1 if the first list is complete; 1 if list or watch fails now |
//! | `kctl_cache_lag_seconds`, `informer_queued_items` | the same | age of the next change, and number of changes to apply |
//! | `informer_processing_latency_seconds` | the same | histogram of the time to apply a change |
//! | `informer_store_resource_version` | the same | last 15 digits of the cache's resourceVersion |
//! | `kctl_source_undecodable_total`, `kctl_source_unreadable_objects` | the same | received states that could not be decoded, again with each list; objects that cannot be decoded now |
//! | `kctl_handler_lag_seconds`, `kctl_handler_waiting` | `controller`, `relation` | changes that wait for `map` or `when` |
//!
//! # Process and requests
//!
//! | Name | Labels | Meaning |
//! |---|---|---|
//! | `kctl_bound_used`, `kctl_bound_limit` | `bound` | how full each bounded buffer is |
//! | `kctl_events_dropped_total` | | Events that were dropped because too many waited |
//! | `leader_election_master_status`, `leader_election_slowpath_total` | `name` | 1 on the leader; renewals that had to read first |
//! | `kctl_slots`, `kctl_slots_owned`, `kctl_slots_gained_total` | | slots of a sharded program; slots of this replica; how often it gained a slot |
//! | `kctl_slots_rejected` | | 1 while replicas with other settings, or with leader election, keep this one from working |
//! | `kctl_ring_handed_over_total` | | objects that a shard of a controller ring handed over |
//! | `certwatcher_read_certificate_total`, `certwatcher_read_certificate_errors_total` | | reads of server certificates |
//! | `rest_client_requests_total`, `rest_client_request_retries_total` | `code`, `host`, `method` or `verb` | requests to the API server, by [`RequestCounter`] |
//! | `rest_client_request_duration_seconds` and others | `verb`, `host` | histograms of durations and sizes |
//! | `process_cpu_seconds_total`, `process_resident_memory_bytes` and others | | as in Prometheus' client libraries |
//! | `kctl_build_info`, `kctl_app_info` | `version`; `name`, `version`, `commit` | always 1 |

mod certificates;
mod process;
mod requests;
mod scrape;
mod text;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
pub use prometheus_client;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

pub use certificates::CertificateReads;
pub use requests::{CountRequests, CountedBody, RequestCounter};
pub use text::Format;

use crate::{
    queue::QueueObserver,
    worker::{Decision, Outcome, Report},
};

pub(crate) use certificates::ReadCounter;
pub(crate) use scrape::Scrape;

/// Values of the label `result` of `controller_runtime_reconcile_total`.
///
/// `requeue` is always 0 and exists for dashboards. `conflict` is kctl's addition: the object changed during
/// the reconcile, which is not an error.
const RESULTS: [&str; 5] = ["success", "error", "requeue", "requeue_after", "conflict"];

/// Buckets of reconcile durations, in seconds (controller-runtime,
/// `pkg/internal/controller/metrics/metrics.go`).
const RECONCILE_SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

type Labels = Vec<(&'static str, String)>;

/// The metrics of one manager. Clones share them.
///
/// [`Manager::metrics`](super::Manager::metrics) returns the metrics of a manager. `Metrics::default()` creates a
/// separate set for a program without one.
///
/// A program may have several sets, for example one per manager in a test. [`add_registry`](Self::add_registry) prints another
/// registry at the same endpoint.
#[derive(Clone, Default)]
pub struct Metrics {
    shared: Arc<MetricsInner>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

struct MetricsInner {
    registry: Mutex<Registry>,
    /// Registries of users, which are printed after this one.
    others: Mutex<Vec<Arc<Registry>>>,
    reconciles: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
    terminal_errors: Family<Labels, Counter>,
    panics: Family<Labels, Counter>,
    timeouts: Family<Labels, Counter>,
    reconcile_seconds: Family<Labels, Histogram>,
    queue_seconds: Family<Labels, Histogram>,
    work_seconds: Family<Labels, Histogram>,
    certificates: certificates::Certificates,
}

fn queue_buckets() -> Histogram {
    // From 10 ns to 1000 s (controller-runtime, `pkg/internal/metrics/workqueue.go`).
    Histogram::new(exponential_buckets(10e-9, 10.0, 12))
}

impl Default for MetricsInner {
    fn default() -> Self {
        let shared = Self {
            registry: Mutex::default(),
            others: Mutex::default(),
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(RECONCILE_SECONDS)),
            queue_seconds: Family::new_with_constructor(queue_buckets),
            work_seconds: Family::new_with_constructor(queue_buckets),
            certificates: certificates::Certificates::default(),
        };
        shared.register();
        shared
    }
}

impl MetricsInner {
    /// Registers the families. Counters are named without `_total`, which the encoder adds.
    fn register(&self) {
        let mut registry = self.registry.lock();
        let counters = [
            ("controller_runtime_reconcile", "Total number of reconciliations per controller", &self.reconciles),
            (
                "controller_runtime_reconcile_errors",
                "Total number of reconciliation errors per controller",
                &self.errors,
            ),
            (
                "controller_runtime_terminal_reconcile_errors",
                "Total number of terminal reconciliation errors per controller",
                &self.terminal_errors,
            ),
            (
                "controller_runtime_reconcile_panics",
                "Total number of panics in reconciles per controller",
                &self.panics,
            ),
            (
                "controller_runtime_reconcile_timeouts",
                "Total number of reconciles per controller that took longer than their timeout",
                &self.timeouts,
            ),
        ];
        for (name, help, family) in counters {
            registry.register(name, help, family.clone());
        }
        let histograms = [
            (
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                &self.reconcile_seconds,
            ),
            (
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in the work queue before being requested",
                &self.queue_seconds,
            ),
            (
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from the work queue takes",
                &self.work_seconds,
            ),
        ];
        for (name, help, family) in histograms {
            registry.register(name, help, family.clone());
        }
        registry.register_collector(Box::new(self.certificates.clone()));
        registry.register_collector(Box::new(process::Process));
    }
}

impl Metrics {
    /// Registers further metrics. Name counters without `_total`, which is added when they are printed.
    ///
    /// The registry is locked while `add` runs.
    ///
    /// A collector that is registered here runs at each scrape, with the registry locked, so it must not call back into
    /// [`text`](Self::text).
    ///
    /// ```
    /// use kctl_runtime::manager::metrics::{Format, Metrics, prometheus_client::metrics::gauge::Gauge};
    ///
    /// let metrics = Metrics::default();
    /// let connections: Gauge = Gauge::default();
    /// metrics.register(|registry| {
    ///     registry.register("podset_connections", "Open connections to the database", connections.clone());
    /// });
    /// connections.set(3);
    /// assert!(metrics.text(Format::Prometheus).contains("podset_connections 3\n"));
    /// ```
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.shared.registry.lock());
    }

    /// Sets the labels of `kctl_app_info`, which is always 1. Pass an empty string for an unknown value.
    ///
    /// Call it once; a second call prints the family twice.
    ///
    /// ```
    /// use kctl_runtime::manager::metrics::{Format, Metrics};
    ///
    /// let metrics = Metrics::default();
    /// metrics.app("podset", "0.1.0", "");
    /// let text = metrics.text(Format::Prometheus);
    /// assert!(text.contains(r#"kctl_app_info{name="podset",version="0.1.0",commit=""} 1"#));
    /// ```
    pub fn app(&self, name: &str, version: &str, commit: &str) {
        let info = Family::<Labels, Gauge>::default();
        let labels = [("name", name), ("version", version), ("commit", commit)];
        info.get_or_create(&labels.map(|(label, value)| (label, value.to_owned())).to_vec()).set(1);
        self.register(|registry| {
            registry.register("kctl_app_info", "The program, its version and commit; always 1", info);
        });
    }

    /// Adds a server certificate to `certwatcher_read_certificate_total` and
    /// `certwatcher_read_certificate_errors_total`, which sum over all of them.
    ///
    /// The function is called at each scrape.
    ///
    /// ```
    /// use kctl_runtime::manager::metrics::{CertificateReads, Format, Metrics};
    ///
    /// let metrics = Metrics::default();
    /// metrics.certificate_reads(|| CertificateReads::new(3, 1));
    /// let text = metrics.text(Format::Prometheus);
    /// assert!(text.contains("certwatcher_read_certificate_errors_total 1"));
    /// ```
    pub fn certificate_reads(&self, reads: impl Fn() -> CertificateReads + Send + Sync + 'static) {
        self.shared.certificates.add(Box::new(reads));
    }

    /// Prints another registry after this one. The two must not have a family in common.
    ///
    /// A family in both would be printed twice, which Prometheus rejects. It is meant for libraries that have their own
    /// registry.
    pub fn add_registry(&self, registry: Registry) {
        self.shared.others.lock().push(Arc::new(registry));
    }

    /// Prints all metrics in this format.
    ///
    /// It calls the collectors of the manager, so it costs about as much as one scrape.
    pub fn text(&self, format: Format) -> String {
        let others = self.shared.others.lock().clone();
        let mut text = String::new();
        // Writing to a string does not fail. The output ends at a collector that returns an error.
        let _own = prometheus_client::encoding::text::encode_registry(&mut text, &self.shared.registry.lock());
        for registry in others {
            let _others = prometheus_client::encoding::text::encode_registry(&mut text, &registry);
        }
        format.finish(text)
    }

    /// Creates the series of a controller at 0, so that rates are right from the first event on.
    pub(crate) fn init_series(&self, controller: &str) {
        let labels = || vec![("controller", controller.to_owned())];
        let MetricsInner { reconciles, errors, terminal_errors, panics, timeouts, reconcile_seconds, .. } =
            &*self.shared;
        for result in RESULTS {
            drop(reconciles.get_or_create(&vec![("controller", controller.into()), ("result", result.into())]));
        }
        for family in [errors, terminal_errors, panics, timeouts] {
            drop(family.get_or_create(&labels()));
        }
        drop(reconcile_seconds.get_or_create(&labels()));
    }

    pub(crate) fn count(&self, report: &Report) {
        let labels = || vec![("controller", report.controller.clone())];
        let shared = &*self.shared;
        let result = match &report.outcome {
            Outcome::Done(action) if action.requeue_after().is_some() => "requeue_after",
            Outcome::Done(_) | Outcome::Vanished => "success",
            // A conflict that is terminal, or names a wait, is a failure like any other.
            Outcome::Failed { .. } if matches!(report.decision, Decision::Outdated { .. }) => "conflict",
            Outcome::Failed { .. } | Outcome::Panicked(_) | Outcome::TimedOut => "error",
        };
        shared
            .reconciles
            .get_or_create(&vec![("controller", report.controller.clone()), ("result", result.into())])
            .inc();
        if result == "error" {
            shared.errors.get_or_create(&labels()).inc();
        }
        let special = match &report.outcome {
            Outcome::Failed { terminal: true, .. } => Some(&shared.terminal_errors),
            Outcome::Panicked(_) => Some(&shared.panics),
            Outcome::TimedOut => Some(&shared.timeouts),
            Outcome::Failed { .. } | Outcome::Done(_) | Outcome::Vanished => None,
        };
        if let Some(family) = special {
            family.get_or_create(&labels()).inc();
        }
        shared.reconcile_seconds.get_or_create(&labels()).observe(report.took.as_secs_f64());
    }

    /// Returns the number of reconciles of a controller since the start, with any result.
    pub(crate) fn n_reconciles(&self, controller: &str) -> u64 {
        let labels = |result: &str| vec![("controller", controller.to_owned()), ("result", result.to_owned())];
        RESULTS.iter().map(|result| self.shared.reconciles.get_or_create(&labels(result)).get()).sum()
    }

    pub(crate) fn queue_observer(&self, controller: &str) -> Arc<dyn QueueObserver> {
        let labels = queue_labels(controller);
        let waited = self.shared.queue_seconds.get_or_create_owned(&labels);
        let worked = self.shared.work_seconds.get_or_create_owned(&labels);
        Arc::new(QueueTimes { waited, worked })
    }
}

/// Returns the labels of both libraries: client-go's `name` and controller-runtime's `controller`.
fn queue_labels(controller: &str) -> Labels {
    vec![("name", controller.into()), ("controller", controller.into())]
}

struct QueueTimes {
    waited: Histogram,
    worked: Histogram,
}

impl QueueObserver for QueueTimes {
    fn observe_queue_duration(&self, wait: Duration) {
        self.waited.observe(wait.as_secs_f64());
    }

    fn observe_work_duration(&self, work: Duration) {
        self.worked.observe(work.as_secs_f64());
    }
}
