//! Metrics of the webhook: requests by kind, operation and code, their durations, and the number of
//! running functions.

use kctl_webhook::server::{Description, RunningFunction, RunningFunctions};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::Instant;

use super::wire::Response;
use crate::function::Rule;

/// Buckets of durations in seconds, from a function without a wait to the longest timeout.
const SECONDS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0, 30.0];
/// The code of a request that was dropped before it had a response.
const GIVEN_UP: u16 = 504;

/// The labels kind and operation.
type Labels = [(&'static str, String); 2];
type CodeLabels = [(&'static str, String); 3];
/// A histogram by kind and operation.
type Durations = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of a webhook. Clones share them.
///
/// The labels `kind` and `operation` come from registered functions, or are empty, so that a client
/// can't create label values.
///
/// ```
/// use kctl_interpreter::webhook::Metrics;
/// use prometheus_client::{encoding::text::encode, registry::Registry};
///
/// let (metrics, mut registry, mut text) = (Metrics::default(), Registry::default(), String::new());
/// metrics.register(&mut registry);
/// encode(&mut text, &registry)?;
/// assert_eq!(text, "# EOF\n", "a metric appears with its first request");
/// assert_eq!(metrics.n_running(), 0);
/// # Ok::<_, std::fmt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<CodeLabels, Counter>,
    /// Histogram by kind and operation.
    durations: Durations,
    /// Gauge by kind and operation.
    in_flight: Family<Labels, Gauge>,
    /// The functions that `in_flight` counts.
    running: RunningFunctions,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self {
            requests: Family::default(),
            durations,
            in_flight: Family::default(),
            running: RunningFunctions::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry.
    ///
    /// | name | type | labels |
    /// |---|---|---|
    /// | `kctl_webhook_requests_total` | counter | `kind`, `operation`, `code` |
    /// | `kctl_webhook_request_seconds` | histogram | `kind`, `operation` |
    /// | `kctl_webhook_requests_in_flight` | gauge | `kind`, `operation` |
    pub fn register(&self, registry: &mut Registry) {
        let requests = "Requests to the interpreter webhook, by kind, operation and code";
        registry.register("kctl_webhook_requests", requests, self.requests.clone());
        let durations = "Time that functions of the interpreter webhook took, by kind and operation";
        registry.register_with_unit("kctl_webhook_request", durations, Unit::Seconds, self.durations.clone());
        let in_flight = "Requests whose function runs, by kind and operation";
        registry.register("kctl_webhook_requests_in_flight", in_flight, self.in_flight.clone());
    }

    /// Returns the number of running functions, including those whose request was given up: they
    /// end at their next await.
    pub fn n_running(&self) -> usize {
        self.running.count()
    }

    /// Returns the running functions with their objects, the oldest one first.
    pub fn running_functions(&self) -> Vec<String> {
        self.running.descriptions()
    }

    /// Counts a request that reached no function, with empty labels.
    pub(super) fn count_rejected(&self, code: u16) {
        self.count(&[("kind", String::new()), ("operation", String::new())], code);
    }

    /// Starts the measurement of a request. It ends when the returned value is dropped.
    pub(super) fn begin(&self, rule: &Rule) -> Measurement {
        let labels =
            [("kind", rule.kind().to_string()), ("operation", rule.function_info().operation.name().to_owned())];
        Measurement { metrics: self.clone(), labels, start: Instant::now(), code: GIVEN_UP }
    }

    fn count(&self, [kind, operation]: &Labels, code: u16) {
        let labels = [kind.clone(), operation.clone(), ("code", code.to_string())];
        self.requests.get_or_create(&labels).inc();
    }
}

pub(super) struct Measurement {
    /// The metrics that are updated at the end.
    metrics: Metrics,
    labels: Labels,
    start: Instant,
    /// The code of the response; [`GIVEN_UP`] until there is one.
    code: u16,
}

impl Measurement {
    /// Counts the function as running. It can outlive the request.
    pub(super) fn running(&self, description: &Description) -> Running {
        let in_flight = self.metrics.in_flight.get_or_create(&self.labels).clone();
        in_flight.inc();
        Running { in_flight, _function: self.metrics.running.start(description.clone()) }
    }

    pub(super) fn record_response(&mut self, response: &Response) {
        self.code = response.status.code;
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        self.metrics.durations.get_or_create(&self.labels).observe(self.start.elapsed().as_secs_f64());
        self.metrics.count(&self.labels, self.code);
    }
}

/// A running function. It counts as running until this is dropped.
pub(super) struct Running {
    in_flight: Gauge,
    _function: RunningFunction,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}
