//! What the webhook did: requests by kind, operation and code, how long they took, and how many run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::Instant;

use super::wire::Response;
use crate::function::Rule;

/// Seconds that an answer takes, from one without waiting to the longest timeout.
const SECONDS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0, 30.0];
/// The code of a request whose answer nobody waited for any more.
const GIVEN_UP: u16 = 504;

type Of = [(&'static str, String); 2];
type WithCode = [(&'static str, String); 3];
type Durations = Family<Of, Histogram, fn() -> Histogram>;

/// The metrics of a webhook; clones share them. The labels kind and operation come from registered functions, or are empty, so that a
/// client can't create new label values.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<WithCode, Counter>,
    durations: Durations,
    in_flight: Family<Of, Gauge>,
    /// Of all kinds and operations.
    n_running: Arc<AtomicUsize>,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self { requests: Family::default(), durations, in_flight: Family::default(), n_running: Arc::default() }
    }
}

impl Metrics {
    /// Adds them to a registry, as `kctl_webhook_requests_total`, `kctl_webhook_request_seconds` and
    /// `kctl_webhook_requests_in_flight`.
    pub fn register(&self, registry: &mut Registry) {
        let requests = "Requests to the interpreter webhook, by kind, operation and code";
        registry.register("kctl_webhook_requests", requests, self.requests.clone());
        let durations = "Time that functions of the interpreter webhook took, by kind and operation";
        registry.register_with_unit("kctl_webhook_request", durations, Unit::Seconds, self.durations.clone());
        let in_flight = "Requests whose function runs, by kind and operation";
        registry.register("kctl_webhook_requests_in_flight", in_flight, self.in_flight.clone());
    }

    /// How many functions run, also those whose requests were given up: they end at their next wait.
    pub fn n_running(&self) -> usize {
        self.n_running.load(Ordering::Relaxed)
    }

    /// Counts a request that reached no function.
    pub(super) fn refused(&self, code: u16) {
        self.count(&[("kind", String::new()), ("operation", String::new())], code);
    }

    /// Begins a request; it ends when what is returned is dropped.
    pub(super) fn begin(&self, rule: &Rule) -> Asked {
        let of = [("kind", rule.kind().to_string()), ("operation", rule.about().operation.name().to_owned())];
        Asked { metrics: self.clone(), of, start: Instant::now(), code: GIVEN_UP }
    }

    fn count(&self, [kind, operation]: &Of, code: u16) {
        let labels = [kind.clone(), operation.clone(), ("code", code.to_string())];
        self.requests.get_or_create(&labels).inc();
    }
}

/// A request for a function.
pub(super) struct Asked {
    metrics: Metrics,
    of: Of,
    start: Instant,
    code: u16,
}

impl Asked {
    /// Begins the function, which may go on when nobody waits for it any more.
    pub(super) fn running(&self) -> Running {
        let in_flight = self.metrics.in_flight.get_or_create(&self.of).clone();
        in_flight.inc();
        self.metrics.n_running.fetch_add(1, Ordering::Relaxed);
        Running { in_flight, n_running: self.metrics.n_running.clone() }
    }

    pub(super) fn answered(&mut self, response: &Response) {
        self.code = response.status.code;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.metrics.durations.get_or_create(&self.of).observe(self.start.elapsed().as_secs_f64());
        self.metrics.count(&self.of, self.code);
    }
}

/// A function that runs.
pub(super) struct Running {
    in_flight: Gauge,
    n_running: Arc<AtomicUsize>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.in_flight.dec();
        self.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}
