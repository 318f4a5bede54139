//! Client layers for each request to the API server: rate limit, timeout, and dry run.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use kctl_runtime::{connection::is_streaming, manager::metrics::RequestCounter};
use kube::{Client, client::Body};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tower::{BoxError, Layer, Service, ServiceBuilder};

mod dry_run;

/// Options of `run` for each request to an API server. The default sends requests unchanged and unlimited.
#[derive(clap::Args, Default, Clone)]
pub(super) struct ClientOptions {
    /// Maximum average number of requests per second to the API server, excluding leader election requests [default: no limit,
    /// because API Priority and Fairness on the server limits clients]
    #[arg(long, value_name = "N", value_parser = parse_positive, help_heading = "Requests")]
    kube_api_qps: Option<f64>,
    /// With --kube-api-qps: number of requests that may be sent before the rate limit applies
    #[arg(long, value_name = "N", requires = "kube_api_qps", default_value_t = 30, help_heading = "Requests")]
    kube_api_burst: u32,
    /// Fail a request without a response within this time, except for watches and followed logs. Operations of the `Context` end after 60s
    /// in any case, writes of a leader earlier [default: no further limit]
    #[arg(long, value_name = "TIME", value_parser = super::options::time, help_heading = "Requests")]
    request_timeout: Option<Duration>,
    /// Change nothing: send each write with dryRun=All, and print it. Consequences of a write, such as Pods of a Deployment, don't occur
    #[arg(long, help_heading = "Requests")]
    pub(super) dry_run: bool,
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("`{text}` must be a positive number, such as `20`"))
}

impl ClientOptions {
    /// Returns the options without the rate limit: for leader election, and for `TokenReview`s for metrics scrapes.
    ///
    /// The rate limit could delay a renewal until the Lease is lost. controller-runtime gives leader election a
    /// separate client for the same reason.
    pub(super) fn without_rate_limit(&self) -> Self {
        Self { kube_api_qps: None, ..self.clone() }
    }

    /// Wraps a client that the user created, so that it obeys these options and counts its requests.
    pub(super) fn wrap(&self, client: Client, requests: &RequestCounter) -> Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        let service = ServiceBuilder::new().layer(requests).layer(self).service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        Client::new(service, namespace).with_valid_until(valid_until)
    }
}

impl<S> Layer<S> for ClientOptions {
    type Service = ClientService<S>;

    fn layer(&self, inner: S) -> ClientService<S> {
        let limit = self.kube_api_qps.map(|qps| TokenBucket::new(qps, self.kube_api_burst));
        ClientService { inner, limit, options: self.clone() }
    }
}

/// A service that obeys [`ClientOptions`]: it waits for a token, rewrites writes of a dry run, and gives
/// up requests that take too long.
///
/// Watches and followed logs have no timeout, because they last by design.
pub(super) struct ClientService<S> {
    inner: S,
    limit: Option<TokenBucket>,
    options: ClientOptions,
}

/// A token bucket, as in client-go's `flowcontrol`: it holds `burst` tokens and gets one per `interval`.
///
/// No timer adds tokens. The number of tokens follows from the time at which the bucket will be full again.
struct TokenBucket {
    interval: Duration,
    burst: u32,
    /// The time at which the bucket is full again.
    full_at: Instant,
    /// The timer of a caller that waits in `poll_ready`.
    wait: Option<Pin<Box<Sleep>>>,
}

impl TokenBucket {
    fn new(qps: f64, burst: u32) -> Self {
        let interval = Duration::from_secs_f64((1.0 / qps).min(86_400.0));
        Self { interval, burst: burst.max(1), full_at: Instant::now(), wait: None }
    }

    /// Waits for a token.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let enough = self.full_at.checked_sub(self.interval * (self.burst - 1));
        if let Some(enough) = enough.filter(|enough| *enough > Instant::now()) {
            let wait = self.wait.get_or_insert_with(|| Box::pin(sleep_until(enough)));
            ready!(wait.as_mut().poll(context));
        }
        self.wait = None;
        Poll::Ready(())
    }

    /// Takes a token. `poll` has returned ready, so there is one.
    fn take_token(&mut self) {
        self.full_at = self.full_at.max(Instant::now()) + self.interval;
    }
}

impl<S, B> Service<Request<Body>> for ClientService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError, Future: Send + 'static>,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if let Some(limit) = &mut self.limit {
            ready!(limit.poll(context));
        }
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(limit) = &mut self.limit {
            limit.take_token();
        }
        if self.options.dry_run {
            match dry_run::rewrite(request) {
                Ok(rewritten) => request = rewritten,
                Err(error) => return Box::pin(async move { Err(error) }),
            }
        }
        let within = self.options.request_timeout.filter(|_| !is_streaming(request.uri()));
        let response = self.inner.call(request);
        Box::pin(async move {
            let Some(within) = within else { return response.await };
            let late = |_elapsed| BoxError::from(format!("no response within {within:?} (--request-timeout)"));
            timeout(within, response).await.map_err(late)?
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kctl_runtime::manager::metrics::{Format, Metrics};
    use parking_lot::Mutex;
    use tower::ServiceExt;

    use super::*;

    type Seen = Arc<Mutex<Vec<(String, Duration)>>>;

    /// Returns a server that responds after `takes`, and a record of its requests with their times.
    fn server(
        takes: Duration,
    ) -> (impl Service<Request<Body>, Response = Response<()>, Error = BoxError, Future: Send + 'static>, Seen) {
        let (seen, begun) = (Seen::default(), Instant::now());
        let noted = seen.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            noted.lock().push((format!("{} {}", request.method(), request.uri()), begun.elapsed()));
            async move {
                tokio::time::sleep(takes).await;
                Ok::<_, BoxError>(Response::new(()))
            }
        });
        (service, seen)
    }

    fn request(method: &str, uri: &str) -> Request<Body> {
        Request::builder().method(method).uri(uri).body(Body::empty()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn client_sends_burst_then_limits_to_qps() {
        for (qps, burst, expected) in
            [(10.0, 3, vec![0, 0, 0, 100, 200]), (0.5, 1, vec![0, 2_000, 4_000]), (2.0, 2, vec![0, 0, 500])]
        {
            let options = ClientOptions { kube_api_qps: Some(qps), kube_api_burst: burst, ..ClientOptions::default() };
            let (service, seen) = server(Duration::ZERO);
            let mut service = options.layer(service);
            for _ in &expected {
                service.ready().await.unwrap().call(request("GET", "/")).await.unwrap();
            }
            let times: Vec<u128> = seen.lock().iter().map(|(_, at)| (at.as_millis() + 5) / 10 * 10).collect();
            assert_eq!(times, expected, "{qps} a second, {burst} at once");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_bucket_refills_while_idle() {
        let options = ClientOptions { kube_api_qps: Some(1.0), kube_api_burst: 2, ..ClientOptions::default() };
        let (service, seen) = server(Duration::ZERO);
        let mut service = options.layer(service);
        for pause in [0, 0, 10, 0, 0] {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            service.ready().await.unwrap().call(request("GET", "/")).await.unwrap();
        }
        let times: Vec<u64> = seen.lock().iter().map(|(_, at)| at.as_secs()).collect();
        assert_eq!(times, [0, 0, 10, 10, 11]);
    }

    #[tokio::test(start_paused = true)]
    async fn request_timeout_ends_slow_requests_but_not_watches() {
        let options = ClientOptions { request_timeout: Some(Duration::from_secs(5)), ..ClientOptions::default() };
        let cases = [
            (4, "/api/v1/pods", true),
            (6, "/api/v1/pods", false),
            (6, "/api/v1/pods?watch=true", true),
            (6, "/api/v1/namespaces/a/pods/b/log?follow=1", true),
        ];
        for (takes, uri, answered) in cases {
            let (service, _) = server(Duration::from_secs(takes));
            let response = options.layer(service).oneshot(request("GET", uri)).await;
            assert_eq!(response.is_ok(), answered, "{takes} s, {uri}");
            if let Err(error) = response {
                assert_eq!(error.to_string(), "no response within 5s (--request-timeout)");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_of_the_user_are_limited_and_counted() {
        let (service, seen) = server(Duration::from_millis(300));
        let service = service.map_response(|_answer| Response::new(Body::empty()));
        let metrics = Metrics::default();
        let requests = RequestCounter::new("here");
        requests.register(&metrics);
        let options = ClientOptions {
            kube_api_qps: Some(1.0),
            kube_api_burst: 1,
            request_timeout: Some(Duration::from_millis(200)),
            dry_run: true,
        };
        let client = options.wrap(Client::new(service, "team"), &requests.for_host("edge"));
        assert_eq!(client.default_namespace(), "team");
        for (uri, answered) in [("/api?watch=true", true), ("/api", false)] {
            assert_eq!(client.send(request("DELETE", uri)).await.is_ok(), answered, "{uri}");
        }
        let seen: Vec<_> = seen.lock().iter().map(|(sent, at)| format!("{sent} at {} s", at.as_secs())).collect();
        assert_eq!(seen, ["DELETE /api?watch=true&dryRun=All at 0 s", "DELETE /api?dryRun=All at 1 s"]);
        let text = metrics.text(Format::Prometheus);
        for code in ["200", "<error>"] {
            let line = format!(r#"rest_client_requests_total{{code="{code}",method="DELETE",host="edge"}} 1"#);
            assert!(text.lines().any(|has| has == line), "{line}: {text}");
        }
        assert_eq!(text.matches("# TYPE rest_client_requests").count(), 1, "{text}");
        let limited = r#"rest_client_rate_limiter_duration_seconds_sum{verb="DELETE",host="edge"} 0.7"#;
        assert!(text.lines().any(|has| has == limited), "the second one waits for what is left of a second: {text}");
    }

    #[tokio::test(start_paused = true)]
    async fn lease_requests_bypass_the_rate_limit() {
        let options = ClientOptions { kube_api_qps: Some(0.1), kube_api_burst: 1, ..ClientOptions::default() };
        for (options, expected) in [(options.without_rate_limit(), [0, 0, 0]), (options, [0, 10, 20])] {
            let (service, seen) = server(Duration::ZERO);
            let mut service = options.layer(service);
            for _ in expected {
                service.ready().await.unwrap().call(request("GET", "/")).await.unwrap();
            }
            let times: Vec<u64> = seen.lock().iter().map(|(_, at)| at.as_secs()).collect();
            assert_eq!(times, expected);
        }
    }

    #[test]
    fn rate_must_be_positive_and_finite() {
        for (text, good) in [("20", true), ("0.5", true), ("0", false), ("-1", false), ("inf", false), ("many", false)]
        {
            assert_eq!(parse_positive(text).is_ok(), good, "{text}");
        }
    }
}
