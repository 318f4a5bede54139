//! The metrics that all webhooks have: requests, their durations, and those in flight. Names and labels differ by webhook.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::Instant;

use super::running::{Description, RunningFunction, RunningFunctions};

/// Buckets of durations in seconds (controller-runtime, `RequestLatency` in `pkg/webhook/internal/metrics/metrics.go`), and
/// the longest timeout.
const SECONDS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0, 30.0];
/// The code of a request that was dropped before it had a response, because its caller stopped waiting.
const GIVEN_UP: u16 = 504;

/// Names and values of labels. A client must not be able to create values.
type Labels = Vec<(&'static str, String)>;

/// The name and the help text of each metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricNames {
    /// The counter of requests, which has the label `code` too.
    pub requests: (&'static str, &'static str),
    /// The histogram of durations, to whose name the unit is appended.
    pub durations: (&'static str, &'static str),
    /// The gauge of requests in flight.
    pub in_flight: (&'static str, &'static str),
}

/// The metrics of requests. Clones share the counts.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: Family<Labels, Counter>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    in_flight: Family<Labels, Gauge>,
    /// The functions that run, also those whose requests were given up.
    pub running: RunningFunctions,
}

impl Default for RequestMetrics {
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

impl RequestMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry, names: &MetricNames) {
        let (name, help) = names.requests;
        registry.register(name, help, self.requests.clone());
        let (name, help) = names.durations;
        registry.register_with_unit(name, help, Unit::Seconds, self.durations.clone());
        let (name, help) = names.in_flight;
        registry.register(name, help, self.in_flight.clone());
    }

    /// Counts a request, without a duration.
    pub fn count(&self, labels: &[(&'static str, String)], code: u16) {
        let with_code: Labels = labels.iter().cloned().chain([("code", code.to_string())]).collect();
        self.requests.get_or_create(&with_code).inc();
    }

    /// Starts a request. Dropping the result ends it.
    pub fn begin(&self, labels: Labels) -> RequestMeasurement {
        RequestMeasurement { metrics: self.clone(), labels, start: Instant::now(), code: GIVEN_UP }
    }
}

/// A request that is being answered. Dropping this adds its duration, and counts it with its code.
#[derive(Debug)]
pub struct RequestMeasurement {
    metrics: RequestMetrics,
    labels: Labels,
    start: Instant,
    /// The code of the response; [`GIVEN_UP`] until there is one.
    code: u16,
}

impl RequestMeasurement {
    /// Sets the code of the response.
    pub fn code(&mut self, code: u16) {
        self.code = code;
    }

    /// Starts the function of the request, which may outlive it.
    pub fn start_function(&self, description: &Description) -> RunningFunction {
        self.metrics.running.start(description.clone())
    }

    /// Counts as in flight until the result is dropped, which may be after the end of the request.
    pub fn in_flight(&self) -> InFlight {
        InFlight::new(self.metrics.in_flight.get_or_create(&self.labels).clone())
    }
}

impl Drop for RequestMeasurement {
    fn drop(&mut self) {
        self.metrics.durations.get_or_create(&self.labels).observe(self.start.elapsed().as_secs_f64());
        self.metrics.count(&self.labels, self.code);
    }
}

/// Counts as in flight as long as it exists.
#[derive(Debug)]
pub struct InFlight(Gauge);

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
