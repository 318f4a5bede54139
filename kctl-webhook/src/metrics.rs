//! What webhooks did, under the names of controller-runtime: requests by path and code, how long they took, and how many run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::Instant;

/// Seconds that an answer takes (controller-runtime, `pkg/webhook/internal/metrics`, and the longest timeout).
const SECONDS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0, 30.0];
/// The code of a request whose answer nobody waited for any more.
const GIVEN_UP: u16 = 504;

type Of = [(&'static str, String); 1];
type WithCode = [(&'static str, String); 2];
type Durations = Family<Of, Histogram, fn() -> Histogram>;

/// The metrics of webhooks. Clones are the same. Labels are paths of functions: a client can't make labels up.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<WithCode, Counter>,
    durations: Durations,
    in_flight: Family<Of, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
    /// At all paths.
    n_running: Arc<AtomicUsize>,
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
            n_running: Arc::default(),
        }
    }
}

impl Metrics {
    /// Adds them to a registry.
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

    /// How many functions run, also those whose requests were given up: they end at their next wait.
    pub fn n_running(&self) -> usize {
        self.n_running.load(Ordering::Relaxed)
    }

    /// Begins a request; it ends when what is returned is dropped.
    pub(crate) fn begin(&self, path: &str) -> Asked {
        let of = [("webhook", path.to_owned())];
        let in_flight = Arc::new(InFlight::new(self.in_flight.get_or_create(&of).clone()));
        let panics = if path == crate::conversion::PATH { &self.conversion_panics } else { &self.panics };
        Asked { metrics: self.clone(), of, start: Instant::now(), code: GIVEN_UP, panics: panics.clone(), in_flight }
    }
}

/// A request.
pub(crate) struct Asked {
    metrics: Metrics,
    of: Of,
    start: Instant,
    code: u16,
    panics: Counter,
    in_flight: Arc<InFlight>,
}

impl Asked {
    /// It is answered, with this code.
    pub(crate) fn code(&mut self, code: u16) {
        self.code = code;
    }

    /// Begins its function, which may go on when nobody waits for it any more.
    pub(crate) fn running(&self) -> Running {
        self.metrics.n_running.fetch_add(1, Ordering::Relaxed);
        Running {
            functions: self.metrics.n_running.clone(),
            panics: self.panics.clone(),
            _in_flight: self.in_flight.clone(),
        }
    }
}

/// A function that runs.
pub(crate) struct Running {
    functions: Arc<AtomicUsize>,
    panics: Counter,
    _in_flight: Arc<InFlight>,
}

impl Running {
    /// It panicked.
    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.functions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// In flight as long as anybody has it: the request, or its function that blocks a thread after the request was given up.
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

impl Drop for Asked {
    fn drop(&mut self) {
        let [(_, path)] = &self.of;
        self.metrics.durations.get_or_create(&self.of).observe(self.start.elapsed().as_secs_f64());
        let with_code = [("webhook", path.clone()), ("code", self.code.to_string())];
        self.metrics.requests.get_or_create(&with_code).inc();
    }
}
