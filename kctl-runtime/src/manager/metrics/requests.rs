//! A tower layer that counts, times and sizes the requests of a client, as client-go's `rest_client_…` metrics.
//!
//! | Name | Meaning |
//! |---|---|
//! | `rest_client_requests_total` | requests by status code; `<error>` without a response |
//! | `rest_client_request_retries_total` | retries after 429 or 503 |
//! | `rest_client_request_duration_seconds` | time until the head of the response, without watches |
//! | `rest_client_rate_limiter_duration_seconds` | time that a request waited for the layers below |
//! | `rest_client_request_size_bytes`, `rest_client_response_size_bytes` | sizes of bodies, without watches |
//!
//! `rest_client_dns_resolution_duration_seconds` is missing: the client has no hook for it.
//!
//! Labels are the method and the host, never the path: names of objects would make the number of series grow without
//! bound (controller-runtime#1423). Each retry counts as a request, since the layer is below the code that retries.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Buf;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::{Labels, Metrics};
use crate::{connection::is_streaming, transport::RetryAfterStatus};

/// Buckets of request durations, in seconds (component-base,
/// `metrics/prometheus/restclient/metrics.go`).
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Buckets of body sizes, in bytes (the same file).
const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// Counts the requests to one API server. Clones add to the same metrics.
///
/// ```no_run
/// # async fn client() -> Result<(), Box<dyn std::error::Error>> {
/// use kctl_runtime::{connection, manager::metrics::{Metrics, RequestCounter}};
/// use kube::Config;
///
/// let config = Config::infer().await?;
/// let counter = RequestCounter::new(config.cluster_url.host().unwrap_or_default());
/// counter.register(&Metrics::default());
/// let client = connection::builder(config)?.with_layer(&counter).build();
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RequestCounter {
    /// Value of the label `host`.
    host: Arc<str>,
    /// By status code, method and host.
    requests: Family<Labels, Counter>,
    /// By the status code that caused the retry.
    repeats: Family<Labels, Counter>,
    seconds: Histograms,
    /// Time in `poll_ready`, in seconds.
    limited: Histograms,
    /// Bytes of request bodies whose length is known in advance.
    sent: Histograms,
    /// Bytes of response bodies, as far as they were read.
    received: Histograms,
}

impl fmt::Debug for RequestCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCounter").field("host", &self.host).finish_non_exhaustive()
    }
}

impl RequestCounter {
    /// Creates a counter. `host` is the value of the label `host`.
    ///
    /// client-go uses host and port of the API server, as in `10.0.0.1:443`.
    ///
    /// ```
    /// use kctl_runtime::manager::metrics::{Metrics, RequestCounter};
    ///
    /// let metrics = Metrics::default();
    /// let counter = RequestCounter::new("10.0.0.1:443");
    /// counter.register(&metrics);
    /// let member = counter.for_host("10.1.0.1:443"); // already registered
    /// # drop(member);
    /// ```
    pub fn new(host: &str) -> Self {
        let seconds = || Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let bytes = || Family::new_with_constructor((|| Histogram::new(BYTES)) as fn() -> Histogram);
        Self {
            host: host.into(),
            requests: Family::default(),
            repeats: Family::default(),
            seconds: seconds(),
            limited: seconds(),
            sent: bytes(),
            received: bytes(),
        }
    }

    /// Returns a counter for requests to another host. Both print into the same families.
    ///
    /// Use it for the clients of further clusters.
    #[must_use]
    pub fn for_host(&self, host: &str) -> Self {
        Self { host: host.into(), ..self.clone() }
    }

    /// Registers the families. Call it once for a counter and its siblings.
    ///
    /// A second call prints every family twice.
    pub fn register(&self, metrics: &Metrics) {
        let help = "Number of HTTP requests, partitioned by status code, method, and host";
        metrics.register(|registry| registry.register("rest_client_requests", help, self.requests.clone()));
        let help = "Number of request retries, partitioned by status code, verb, and host";
        metrics.register(|registry| registry.register("rest_client_request_retries", help, self.repeats.clone()));
        let histograms = [
            ("rest_client_request_duration_seconds", "Request latency in seconds", &self.seconds),
            ("rest_client_rate_limiter_duration_seconds", "Client side rate limiter latency in seconds", &self.limited),
            ("rest_client_request_size_bytes", "Request size in bytes", &self.sent),
            ("rest_client_response_size_bytes", "Response size in bytes", &self.received),
        ];
        for (name, what, histogram) in histograms {
            let help = format!("{what}. Broken down by verb, and host");
            metrics.register(|registry| registry.register(name, help, histogram.clone()));
        }
    }

    fn observe(&self, histograms: &Histograms, method: &'static str, value: f64) {
        histograms.get_or_create(&vec![("verb", method.to_owned()), ("host", self.host.to_string())]).observe(value);
    }

    /// Counts a finished request. `took` is `None` for a watch, which has no duration.
    fn count(&self, method: &'static str, code: String, took: Option<Duration>) {
        let labels = vec![("code", code), ("method", method.to_owned()), ("host", self.host.to_string())];
        self.requests.get_or_create(&labels).inc();
        if let Some(took) = took {
            self.observe(&self.seconds, method, took.as_secs_f64());
        }
    }

    /// Counts a retry under the status code of the response before it.
    fn count_repeat(&self, method: &'static str, RetryAfterStatus(code): RetryAfterStatus) {
        let (code, host) = (code.to_string(), self.host.to_string());
        let labels = vec![("code", code), ("verb", method.to_owned()), ("host", host)];
        self.repeats.get_or_create(&labels).inc();
    }
}

/// Returns the method as a label, or `other` for one that Kubernetes does not use.
fn method(method: &http::Method) -> &'static str {
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    methods.into_iter().find(|name| method == name).unwrap_or("other")
}

impl<S> Layer<S> for RequestCounter {
    type Service = CountRequests<S>;

    fn layer(&self, inner: S) -> CountRequests<S> {
        CountRequests { inner, counter: self.clone(), waits: None, waited: None }
    }
}

/// A request without a response yet. It is counted when this is dropped, because a caller that waits no longer drops the
/// future of the request.
struct RequestInFlight {
    counter: RequestCounter,
    method: &'static str,
    /// `None` for a watch.
    began: Option<Instant>,
    status: Option<u16>,
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        // The code that client-go records for a request without a response.
        let code = self.status.map_or_else(|| "<error>".into(), |status| status.to_string());
        self.counter.count(self.method, code, self.began.map(|began| began.elapsed()));
    }
}

/// The service that [`RequestCounter`] wraps around a client.
///
/// Its future resolves with the head of the response; the size is counted when the body has been read.
pub struct CountRequests<S> {
    inner: S,
    counter: RequestCounter,
    /// Time since which the next request waits for the inner service to be ready.
    waits: Option<Instant>,
    waited: Option<Duration>,
}

impl<S> fmt::Debug for CountRequests<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountRequests").field("counter", &self.counter).finish_non_exhaustive()
    }
}

impl<S: Clone> Clone for CountRequests<S> {
    fn clone(&self) -> Self {
        // The readiness that `poll_ready` obtained is not shared between clones.
        self.counter.layer(self.inner.clone())
    }
}

impl<S, A, B> Service<Request<A>> for CountRequests<S>
where
    S: Service<Request<A>, Response = Response<B>, Error: fmt::Display, Future: Send + 'static>,
    A: Body,
    B: Body + Unpin,
{
    type Response = Response<CountedBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let waits = *self.waits.get_or_insert_with(Instant::now);
        ready!(self.inner.poll_ready(context))?;
        self.waited.get_or_insert_with(|| waits.elapsed());
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (method, counter) = (method(request.method()), self.counter.clone());
        self.waits = None;
        if let Some(waited) = self.waited.take() {
            counter.observe(&counter.limited, method, waited.as_secs_f64());
        }
        if let Some(repeats) = request.extensions().get::<RetryAfterStatus>() {
            counter.count_repeat(method, *repeats);
        }
        if let Some(len) = request.body().size_hint().exact() {
            counter.observe(&counter.sent, method, as_float(len));
        }
        // The duration of a watch says nothing about the API server, so it is not recorded, as in client-go.
        let began = (!is_streaming(request.uri())).then(Instant::now);
        let mut in_flight = RequestInFlight { counter: counter.clone(), method, began, status: None };
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            in_flight.status = response.as_ref().ok().map(|response| response.status().as_u16());
            drop(in_flight);
            let counter_and_method = began.map(|_| (counter, method));
            response.map(|response| response.map(|inner| CountedBody { inner, len: 0, counter_and_method }))
        })
    }
}

/// The body of a response, whose size is counted when it was read or dropped.
///
/// Bodies of watches are not counted, because they have no end.
///
/// It passes all frames on unchanged.
pub struct CountedBody<B> {
    inner: B,
    len: u64,
    /// The counter and method, until the size was counted.
    counter_and_method: Option<(RequestCounter, &'static str)>,
}

impl<B> fmt::Debug for CountedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedBody").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<B> CountedBody<B> {
    /// Records the size, once.
    fn record(&mut self) {
        if let Some((counter, method)) = self.counter_and_method.take() {
            counter.observe(&counter.received, method, as_float(self.len));
        }
    }
}

impl<B: Body + Unpin> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => self.len += frame.data_ref().map_or(0, |data| data.remaining() as u64),
            Some(Err(_)) | None => self.record(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for CountedBody<B> {
    fn drop(&mut self) {
        self.record();
    }
}

#[expect(clippy::cast_precision_loss, reason = "no body is so large that it matters")]
fn as_float(len: u64) -> f64 {
    len as f64
}
