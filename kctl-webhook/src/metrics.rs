//! Metrics of webhooks, under controller-runtime's names: requests by path and code, latency,
//! requests in flight, and panics.
//!
//! | metric | type |
//! |---|---|
//! | `controller_runtime_webhook_requests_total` | counter by `webhook` and `code` |
//! | `controller_runtime_webhook_latency_seconds` | histogram by `webhook` |
//! | `controller_runtime_webhook_requests_in_flight` | gauge by `webhook` |
//! | `controller_runtime_webhook_panics_total` | counter |
//! | `controller_runtime_conversion_webhook_panics_total` | counter |

use std::sync::Arc;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::Instant;

use crate::server::{Description, RunningFunction, RunningFunctions};

/// Buckets of the latency (controller-runtime, `RequestLatency` in `pkg/webhook/internal/metrics/metrics.go`), and the
/// longest timeout.
const SECONDS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0, 30.0];
/// Code of a request whose caller stopped waiting.
const GIVEN_UP: u16 = 504;

type Labels = [(&'static str, String); 1];
type CodeLabels = [(&'static str, String); 2];
type Durations = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of webhooks. Clones share the counts.
///
/// The label `webhook` is the path of a function: a client can't create labels.
///
/// ```
/// use kctl_webhook::Metrics;
/// use prometheus_client::{encoding::text::encode, registry::Registry};
///
/// let (metrics, mut registry) = (Metrics::default(), Registry::default());
/// metrics.register(&mut registry);
/// let mut text = String::new();
/// encode(&mut text, &registry).unwrap();
/// assert!(text.contains("controller_runtime_webhook_panics_total 0"));
/// assert_eq!(metrics.n_running(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<CodeLabels, Counter>,
    durations: Durations,
    in_flight: Family<Labels, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
    /// Running functions at all paths.
    running: RunningFunctions,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self {
            requests: Family::default(),
            durations,
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
            running: RunningFunctions::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let requests = "Total number of admission requests by HTTP status code";
        registry.register("controller_runtime_webhook_requests", requests, self.requests.clone());
        let durations = "Histogram of the latency of processing admission requests";
        registry.register_with_unit(
            "controller_runtime_webhook_latency",
            durations,
            Unit::Seconds,
            self.durations.clone(),
        );
        let in_flight = "Current number of admission requests being served";
        registry.register("controller_runtime_webhook_requests_in_flight", in_flight, self.in_flight.clone());
        let panics = "Total number of webhook panics";
        registry.register("controller_runtime_webhook_panics", panics, self.panics.clone());
        let panics = "Total number of conversion webhook panics";
        registry.register("controller_runtime_conversion_webhook_panics", panics, self.conversion_panics.clone());
    }

    /// Returns the number of running functions.
    ///
    /// It includes those whose requests were given up: they end at their next `.await`. A program
    /// that stops waits until it is zero.
    pub fn n_running(&self) -> usize {
        self.running.count()
    }

    /// Returns the running functions with their objects, such as `` `rules` (src/main.rs:12) for Site default/web ``, the
    /// oldest one first.
    pub fn running_functions(&self) -> Vec<String> {
        self.running.descriptions()
    }

    /// Starts a request; dropping the result ends it.
    pub(crate) fn begin(&self, path: &str, endpoint: Endpoint) -> Measurement {
        let labels = [("webhook", path.to_owned())];
        let in_flight = Arc::new(InFlight::new(self.in_flight.get_or_create(&labels).clone()));
        let panics = match endpoint {
            Endpoint::Admission => &self.panics,
            Endpoint::Conversion => &self.conversion_panics,
        };
        Measurement {
            metrics: self.clone(),
            labels,
            start: Instant::now(),
            code: GIVEN_UP,
            panics: panics.clone(),
            in_flight,
        }
    }
}

/// The kind of webhook that handles a request. Each kind counts its panics, as in controller-runtime (`WebhookPanics` in
/// `pkg/webhook/admission/metrics/metrics.go` and `pkg/webhook/conversion/metrics/metrics.go`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Endpoint {
    Admission,
    Conversion,
}

pub(crate) struct Measurement {
    metrics: Metrics,
    labels: Labels,
    start: Instant,
    code: u16,
    panics: Counter,
    in_flight: Arc<InFlight>,
}

impl Measurement {
    pub(crate) fn code(&mut self, code: u16) {
        self.code = code;
    }

    /// Starts the function of the request, which may outlive it.
    pub(crate) fn start_function(&self, description: &Description) -> Running {
        Running {
            _function: self.metrics.running.start(description.clone()),
            panics: self.panics.clone(),
            _in_flight: self.in_flight.clone(),
        }
    }
}

/// The measurement of a function.
pub(crate) struct Running {
    _function: RunningFunction,
    panics: Counter,
    _in_flight: Arc<InFlight>,
}

impl Running {
    /// Counts a panic.
    pub(crate) fn count_panic(&self) {
        self.panics.inc();
    }
}

/// Counts as in flight as long as the request or its function exists; a function may block a thread
/// after its request was given up.
struct InFlight(Gauge);

impl InFlight {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        let [(_, path)] = &self.labels;
        self.metrics.durations.get_or_create(&self.labels).observe(self.start.elapsed().as_secs_f64());
        let with_code = [("webhook", path.clone()), ("code", self.code.to_string())];
        self.metrics.requests.get_or_create(&with_code).inc();
    }
}
