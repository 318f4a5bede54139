//! Metrics of the webhook: requests by kind, operation and code, their durations, and the number of
//! running functions.

use kctl_webhook::server::{Description, InFlight, MetricNames, RequestMeasurement, RequestMetrics, RunningFunction};
use prometheus_client::registry::Registry;

use super::wire::Response;
use crate::function::Rule;

const NAMES: MetricNames = MetricNames {
    requests: ("kctl_webhook_requests", "Requests to the interpreter webhook, by kind, operation and code"),
    durations: ("kctl_webhook_request", "Time that functions of the interpreter webhook took, by kind and operation"),
    in_flight: ("kctl_webhook_requests_in_flight", "Requests whose function runs, by kind and operation"),
};

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
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: RequestMetrics,
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
        self.requests.register(registry, &NAMES);
    }

    /// Returns the number of running functions, including those whose request was given up: they
    /// end at their next await.
    pub fn n_running(&self) -> usize {
        self.requests.running.count()
    }

    /// Returns the running functions with their objects, the oldest one first.
    pub fn running_functions(&self) -> Vec<String> {
        self.requests.running.descriptions()
    }

    /// Counts a request that reached no function, with empty labels.
    pub(super) fn count_rejected(&self, code: u16) {
        self.requests.count(&[("kind", String::new()), ("operation", String::new())], code);
    }

    /// Starts the measurement of a request. It ends when the returned value is dropped.
    pub(super) fn begin(&self, rule: &Rule) -> Measurement {
        let operation = rule.function_info().operation.name().to_owned();
        let labels = vec![("kind", rule.kind().to_string()), ("operation", operation)];
        Measurement(self.requests.begin(labels))
    }
}

pub(super) struct Measurement(RequestMeasurement);

impl Measurement {
    /// Counts the function as running. It can outlive the request.
    pub(super) fn running(&self, description: &Description) -> Running {
        Running { _in_flight: self.0.in_flight(), _function: self.0.start_function(description) }
    }

    pub(super) fn record_response(&mut self, response: &Response) {
        self.0.code(response.status.code);
    }
}

/// A running function. It counts as running until this is dropped.
pub(super) struct Running {
    _in_flight: InFlight,
    _function: RunningFunction,
}
