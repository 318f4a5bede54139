//! Counts and times the requests of a client: a layer around it, as `rest_client_requests_total` and
//! `rest_client_request_duration_seconds` of client-go.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::{Labels, Metrics};
use crate::source::is_watch;

/// Seconds until an answer begins (component-base, `metrics/prometheus/restclient/metrics.go`).
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Counts requests to one API server. Clones count together.
#[derive(Clone)]
pub struct RequestCounter {
    host: Arc<str>,
    requests: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
}

impl RequestCounter {
    /// A counter of the requests to this host.
    pub fn new(host: &str) -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self { host: host.into(), requests: Family::default(), seconds }
    }

    /// A counter of the requests to another host: what it counts is among what this one adds to a manager's metrics.
    #[must_use]
    pub fn beside(&self, host: &str) -> Self {
        Self { host: host.into(), ..self.clone() }
    }

    /// Adds what it counts to a manager's metrics.
    pub fn register(&self, metrics: &Metrics) {
        let help = "Number of HTTP requests, partitioned by status code, method, and host";
        metrics.register(|registry| registry.register("rest_client_requests", help, self.requests.clone()));
        let (name, help) =
            ("rest_client_request_duration_seconds", "Request latency in seconds. Broken down by verb, and host");
        metrics.register(|registry| registry.register(name, help, self.seconds.clone()));
    }

    fn count(&self, method: &'static str, code: String, took: Option<Duration>) {
        let labels = vec![("code", code), ("method", method.to_owned()), ("host", self.host.to_string())];
        self.requests.get_or_create(&labels).inc();
        if let Some(took) = took {
            let labels = vec![("verb", method.to_owned()), ("host", self.host.to_string())];
            self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        }
    }
}

/// Methods that have a label of their own: what Kubernetes speaks.
fn method(method: &http::Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| method == known).unwrap_or("other")
}

impl<S> Layer<S> for RequestCounter {
    type Service = CountRequests<S>;

    fn layer(&self, inner: S) -> CountRequests<S> {
        CountRequests { inner, counter: self.clone() }
    }
}

/// A client whose requests are counted.
#[derive(Clone)]
pub struct CountRequests<S> {
    inner: S,
    counter: RequestCounter,
}

impl<S, A, B> Service<Request<A>> for CountRequests<S>
where
    S: Service<Request<A>, Response = Response<B>, Error: fmt::Display, Future: Send + 'static>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (method, counter) = (method(request.method()), self.counter.clone());
        // A watch is as long as somebody watches: it has no duration, as in client-go.
        let began = (!is_watch(request.uri())).then(Instant::now);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            // As client-go writes a request without an answer.
            let code = answer.as_ref().map_or_else(|_| "<error>".into(), |answer| answer.status().as_u16().to_string());
            counter.count(method, code, began.map(|began| began.elapsed()));
            answer
        })
    }
}
