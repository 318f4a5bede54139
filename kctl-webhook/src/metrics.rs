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

use prometheus_client::{metrics::counter::Counter, registry::Registry};

use crate::server::{Description, InFlight, MetricNames, RequestMeasurement, RequestMetrics, RunningFunction};

const NAMES: MetricNames = MetricNames {
    requests: ("controller_runtime_webhook_requests", "Total number of admission requests by HTTP status code"),
    durations: ("controller_runtime_webhook_latency", "Histogram of the latency of processing admission requests"),
    in_flight: ("controller_runtime_webhook_requests_in_flight", "Current number of admission requests being served"),
};

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
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: RequestMetrics,
    panics: Counter,
    conversion_panics: Counter,
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.requests.register(registry, &NAMES);
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
        self.requests.running.count()
    }

    /// Returns the running functions with their objects, such as `` `rules` (src/main.rs:12) for Site default/web ``, the
    /// oldest one first.
    pub fn running_functions(&self) -> Vec<String> {
        self.requests.running.descriptions()
    }

    /// Starts a request; dropping the result ends it.
    pub(crate) fn begin(&self, path: &str, endpoint: Endpoint) -> Measurement {
        let request = self.requests.begin(vec![("webhook", path.to_owned())]);
        let in_flight = Arc::new(request.in_flight());
        let panics = match endpoint {
            Endpoint::Admission => &self.panics,
            Endpoint::Conversion => &self.conversion_panics,
        };
        Measurement { request, panics: panics.clone(), in_flight }
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
    request: RequestMeasurement,
    panics: Counter,
    /// A function may block a thread after its request was given up, and counts as in flight until then.
    in_flight: Arc<InFlight>,
}

impl Measurement {
    pub(crate) fn code(&mut self, code: u16) {
        self.request.code(code);
    }

    /// Starts the function of the request, which may outlive it.
    pub(crate) fn start_function(&self, description: &Description) -> Running {
        Running {
            _function: self.request.start_function(description),
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
