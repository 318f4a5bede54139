//! One request and its response: status and body, or an error that names the operation.

mod deadline;
mod error;
mod operation;

use std::{future::poll_fn, io, task::Poll, time::Duration};

use http::{Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kctl_apimachinery::url;
use kube::{Client, client::Body};
use tokio::time::Instant;
use tokio_rustls::rustls::{self, CertificateError};

pub use self::{error::ApiError, operation::Operation};
use crate::{connection::LongResponse, trace::Trace};
pub(crate) use deadline::Deadline;

/// Longest response that is read as a whole, in bytes: many times the largest object that etcd stores. Lists are read as
/// streams.
const OBJECT_LEN_MAX: usize = 64 << 20;
/// The same for the response to a DELETE, which may be a list of all deleted objects.
const DELETED_LEN_MAX: usize = 1 << 30;
/// Maximum number of bytes of an error response that are read. A `Status` is shorter, unless it repeats an object.
const ERROR_BODY_LEN_MAX: usize = 64 << 10;
/// Maximum number of tries of a request that is rejected with 429 or 503 and a `Retry-After`.
const TRIES_MAX: u32 = 10;
/// Longest wait for the response to a write or a read, for the head of a watch or a list, and between two chunks of a
/// list.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Remedy for a certificate of the API server that no trusted authority has signed.
const UNKNOWN_ISSUER_HELP: &str = "add the CA that signed it to the kubeconfig as `certificate-authority`";

pub(crate) const JSON: &str = "application/json";

/// Request extension: this is a retry, after a response with this status. Metrics count it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryAfterStatus(pub(crate) u16);

/// The body of a request.
#[derive(Clone)]
pub(crate) struct RequestBody<'a> {
    content_type: &'a str,
    bytes: Vec<u8>,
}

impl<'a> RequestBody<'a> {
    pub(crate) fn new(content_type: &'a str, bytes: Vec<u8>) -> Self {
        Self { content_type, bytes }
    }

    pub(crate) fn json(bytes: Vec<u8>) -> Self {
        Self::new(JSON, bytes)
    }
}

/// A request before it is sent, which can be sent several times.
struct RequestTemplate<'a> {
    method: Method,
    path: &'a str,
    body: Option<RequestBody<'a>>,
    /// `Accept` header: forms of the response, the preferred one first.
    accept: &'a str,
    /// `true` for a list of all objects of a kind, which gets a connection of another pool.
    is_long: bool,
}

impl<'a> RequestTemplate<'a> {
    fn get(path: &'a str, accept: &'a str) -> Self {
        Self { method: Method::GET, path, body: None, accept, is_long: false }
    }
}

/// Sends a GET and returns the body.
pub(crate) async fn get(client: &Client, operation: &Operation, path: &str) -> Result<String, ApiError> {
    send(client, operation, Method::GET, path, None).await
}

/// Opens a watch and returns its body once the status is success. It is not repeated on 429.
///
/// The timeout covers the body of an error as well. Only the body of a success lasts.
pub(crate) async fn open(client: &Client, operation: &Operation, path: &str, accept: &str) -> Result<Body, ApiError> {
    let opened = async {
        let response = send_once(client, operation, &RequestTemplate::get(path, accept), None).await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(response_error(operation, response).await)
    };
    tokio::time::timeout(RESPONSE_TIMEOUT, opened)
        .await
        .unwrap_or_else(|_elapsed| Err(timeout_error(operation, RESPONSE_TIMEOUT)))
}

/// Sends a request and returns the body, waiting at most [`RESPONSE_TIMEOUT`].
pub(crate) async fn send(
    client: &Client,
    operation: &Operation,
    method: Method,
    path: &str,
    body: Option<RequestBody<'_>>,
) -> Result<String, ApiError> {
    send_within(client, operation, method, path, body, Deadline::from_now(RESPONSE_TIMEOUT)).await
}

/// Sends a request and returns the body, waiting at most until the deadline, retries included.
pub(crate) async fn send_within(
    client: &Client,
    operation: &Operation,
    method: Method,
    path: &str,
    body: Option<RequestBody<'_>>,
    deadline: Deadline,
) -> Result<String, ApiError> {
    let len_max = if method.as_str() == "DELETE" { DELETED_LEN_MAX } else { OBJECT_LEN_MAX };
    let template = RequestTemplate { method, path, body, accept: JSON, is_long: false };
    let response =
        async { read(operation, send_with_retries(client, operation, &template, deadline.at()).await?, len_max).await };
    in_time(deadline.at(), response).await.unwrap_or_else(|| Err(timeout_error(operation, deadline.timeout())))
}

/// Returns the result of a future; `None` if it is not ready before `until`.
///
/// Unlike [`tokio::time::timeout`], it never polls the future when the time is over. A process that was frozen
/// continues with both over: the wait of the request (a `Retry-After`, a connection) and its time. A write that is sent
/// then could arrive after one of the next leader.
pub(crate) fn in_time<T>(until: Instant, future: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    // On the heap: as a part of the caller's future, a request would be copied into each of the enclosing futures.
    let mut future = Box::pin(future);
    let unless_late =
        poll_fn(move |cx| if Instant::now() >= until { Poll::Ready(None) } else { future.as_mut().poll(cx).map(Some) });
    async move { tokio::time::timeout_at(until, unless_late).await.unwrap_or_default() }
}

/// Returns the path of a list of the one object with this name in a collection.
///
/// Names of RBAC objects may contain a comma or an equals sign, which need a backslash in a field selector (apimachinery,
/// `pkg/fields/selector.go`, `EscapeValue`).
pub(crate) fn list_by_name(collection: &str, name: &str) -> String {
    let mut selector = "metadata.name=".to_owned();
    for character in name.chars() {
        if matches!(character, '\\' | ',' | '=') {
            selector.push('\\');
        }
        selector.push(character);
    }
    format!("{collection}?fieldSelector={}", url::escape(&selector))
}

/// Gets a list of one or a few objects as a stream, in the first of these media types that the server supports. The
/// response's status has been checked.
pub(crate) async fn list_few(
    client: &Client,
    operation: &Operation,
    path: &str,
    accept: &str,
) -> Result<Body, ApiError> {
    stream(client, operation, RequestTemplate::get(path, accept)).await
}

/// Gets a list of all objects of a kind in the same way.
pub(crate) async fn list_all(
    client: &Client,
    operation: &Operation,
    path: &str,
    accept: &str,
) -> Result<Body, ApiError> {
    stream(client, operation, RequestTemplate { is_long: true, ..RequestTemplate::get(path, accept) }).await
}

/// Returns the body of a successful response. The timeout covers the head of the response alone.
async fn stream(client: &Client, operation: &Operation, template: RequestTemplate<'_>) -> Result<Body, ApiError> {
    let until = Instant::now() + RESPONSE_TIMEOUT;
    let response = async { Ok(send_with_retries(client, operation, &template, until).await?.into_body()) };
    tokio::time::timeout(RESPONSE_TIMEOUT, response)
        .await
        .unwrap_or_else(|_elapsed| Err(timeout_error(operation, RESPONSE_TIMEOUT)))
}

/// Returns the response to a request that succeeded. A rejected one with `Retry-After` is repeated.
///
/// Only a `Retry-After` that ends before `until` is waited for here. A longer one is returned, and the
/// work queue waits.
async fn send_with_retries(
    client: &Client,
    operation: &Operation,
    template: &RequestTemplate<'_>,
    until: Instant,
) -> Result<Response<Body>, ApiError> {
    let (mut tries, mut repeats) = (1, None);
    loop {
        let response = send_once(client, operation, template, repeats).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let error = response_error(operation, response).await;
        // A server that names a wait has not processed the request, so even a create can be repeated.
        let busy = matches!(error.code(), Some(429 | 503));
        let fits =
            |wait: &Duration| busy && tries < TRIES_MAX && *wait < until.saturating_duration_since(Instant::now());
        match error.retry_after().filter(fits) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(error),
        }
        repeats = error.code().map(RetryAfterStatus);
        tries += 1;
    }
}

/// Returns the error of a request without a response in time.
pub(crate) fn timeout_error(operation: &Operation, within: Duration) -> ApiError {
    ApiError::NoResponse { operation: operation.into(), cause: format!("nothing within {within:?}") }
}

/// Sends the request once and returns the head of the response, whatever its status.
///
/// The current trace goes along as a `traceparent` header (W3C Trace Context).
async fn send_once(
    client: &Client,
    operation: &Operation,
    template: &RequestTemplate<'_>,
    repeats: Option<RetryAfterStatus>,
) -> Result<Response<Body>, ApiError> {
    if let Some(cause) = operation.invalid_path_segment() {
        return Err(ApiError::Unsendable { operation: operation.into(), cause });
    }
    let unanswered = |cause: String| ApiError::NoResponse { operation: operation.into(), cause };
    let mut request =
        Request::builder().method(template.method.clone()).uri(template.path).header("accept", template.accept);
    if let Some(trace) = Trace::current() {
        request = request.header("traceparent", trace.parent());
    }
    let bytes = match &template.body {
        Some(RequestBody { content_type, bytes }) => {
            request = request.header("content-type", *content_type);
            bytes.clone()
        }
        None => Vec::new(),
    };
    let mut request = request.body(Body::from(bytes)).map_err(|error| unanswered(error.to_string()))?;
    if let Some(repeats) = repeats {
        request.extensions_mut().insert(repeats);
    }
    if template.is_long {
        request.extensions_mut().insert(LongResponse);
    }
    client.send(request).await.map_err(|error| unanswered(root_cause(&error)))
}

/// Returns the message of the innermost error; the outer ones only name the layers that it passed.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let Some(last) = causes.last() else { return String::new() };
    if is_unknown_issuer(last) {
        return format!("{last}; {UNKNOWN_ISSUER_HELP}");
    }
    // The buffer of kube's client ends with its runtime. Its message names a worker, which readers take for one of a
    // controller.
    if last.is::<tower::buffer::error::Closed>() {
        return "the client is closed, because this process stops".into();
    }
    match last.downcast_ref::<io::Error>() {
        // tokio's message is "deadline has elapsed".
        Some(late) if late.kind() == io::ErrorKind::TimedOut && late.raw_os_error().is_none() => {
            "the connection timed out".into()
        }
        _ => last.to_string(),
    }
}

/// Returns `true` if a client rejected the server's certificate because its issuer is not trusted.
fn is_unknown_issuer(error: &(dyn std::error::Error + 'static)) -> bool {
    // The TLS stream wraps the error of rustls as an I/O error.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let tls: Option<&rustls::Error> = error.downcast_ref().or_else(|| wrapped.and_then(|error| error.downcast_ref()));
    matches!(tls, Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)))
}

/// Reads the body as a string of at most this many bytes.
async fn read(operation: &Operation, response: Response<Body>, len_max: usize) -> Result<String, ApiError> {
    let unreadable = |cause: String| ApiError::Unreadable { operation: operation.into(), cause };
    let collected = Limited::new(response.into_body(), len_max).collect().await.map_err(|error| {
        let is_long = error.is::<LengthLimitError>();
        unreadable(if is_long { format!("it is longer than {len_max} bytes") } else { error.to_string() })
    });
    let bytes = collected?.to_bytes();
    String::from_utf8(bytes.into()).map_err(|error| unreadable(error.to_string()))
}

/// Builds the error of a response that is not a success, from its `Status` and `Retry-After`.
///
/// An incomplete body is ignored. Only the first [`ERROR_BODY_LEN_MAX`] bytes of a longer one are used.
async fn response_error(operation: &Operation, response: Response<Body>) -> ApiError {
    let code = response.status().as_u16();
    let after = response.headers().get("retry-after");
    let seconds = after.and_then(|value| value.to_str().ok()?.parse().ok());
    // A wait of zero names none: a request that is rejected at once again would end in a hot loop.
    let after = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while bytes.len() < ERROR_BODY_LEN_MAX {
        match body.frame().await {
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Some(Err(_broken)) => return ApiError::rejected(operation, code, after, ""),
            None => break,
        }
    }
    bytes.truncate(ERROR_BODY_LEN_MAX);
    ApiError::rejected(operation, code, after, &String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use futures::StreamExt;
    use k8s_openapi::api::core::v1::Secret;
    use tower::service_fn;

    use super::*;
    use crate::{key::ObjectKey, object::Kind};

    /// Returns a server that rejects its first `n_times` requests with this wait, and the number of requests so far.
    fn busy(code: u16, wait: u64, n_times: u32) -> (Client, Arc<AtomicU32>) {
        let n_requests = Arc::new(AtomicU32::new(0));
        let counted = n_requests.clone();
        let service = service_fn(move |_request: Request<Body>| {
            let is_busy = counted.fetch_add(1, Ordering::Relaxed) < n_times;
            let response = Response::builder().status(if is_busy { code } else { 200 }).header("retry-after", wait);
            async move { Ok::<_, Infallible>(response.body(Body::empty()).unwrap()) }
        });
        (Client::new(service, "default"), n_requests)
    }

    #[test]
    fn names_are_escaped_in_field_selectors() {
        for (name, expected) in
            [("web-0", "web-0"), ("system:node", "system%3Anode"), (r"a,b=c\d", "a%5C%2Cb%5C%3Dc%5C%5Cd")]
        {
            assert_eq!(list_by_name("/roles", name), format!("/roles?fieldSelector=metadata.name%3D{expected}"));
        }
    }

    #[test]
    fn unknown_issuer_has_a_remedy() {
        let rejected = |error: CertificateError| {
            root_cause(&io::Error::new(io::ErrorKind::InvalidData, rustls::Error::from(error)))
        };
        let unknown = rejected(CertificateError::UnknownIssuer);
        assert_eq!(unknown, format!("invalid peer certificate: UnknownIssuer; {UNKNOWN_ISSUER_HELP}"));
        assert_eq!(rejected(CertificateError::BadEncoding), "invalid peer certificate: BadEncoding");
    }

    #[tokio::test]
    async fn names_with_path_separators_are_not_sent() {
        let kind = Kind::of::<Secret>();
        for (namespace, name, invalid) in [
            ("team-a/pods", "db", Some("`team-a/pods` is not a valid namespace; ")),
            ("..", "db", Some("`..` is not a valid namespace; ")),
            ("team-a", "db/status", Some("`db/status` is not a valid name; ")),
            ("team-a", "db%2Fstatus", Some("`db%2Fstatus` is not a valid name; ")),
            ("team-a", "system:db..1", None),
            ("team-a", "", None),
        ] {
            let (client, n_requests) = busy(429, 0, 0);
            let operation = Operation::on_object("get", "", &kind, ObjectKey::new(Some(namespace), name));
            let error = get(&client, &operation, "/").await.err().map(|error| error.to_string());
            let expected = invalid.map(|cause| format!("get Secret {namespace}/{name}: not sent: {cause}"));
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            assert!(error.unwrap_or_default().starts_with(&expected.unwrap_or_default()), "{namespace}/{name}");
            assert_eq!(n_requests.load(Ordering::Relaxed), u32::from(invalid.is_none()), "{namespace}/{name}");
        }
    }

    #[tokio::test]
    async fn closed_client_is_not_called_a_worker() {
        let service = service_fn(|_request: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
        let (buffer, worker) = tower::buffer::Buffer::<Request<Body>, _>::pair(service, 1);
        drop(worker);
        let error = get(&Client::new(buffer, "default"), &"get it".into(), "/").await.unwrap_err().to_string();
        let expected = "get it: no response from the API server: the client is closed, because this process stops";
        assert_eq!(error, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_request_is_repeated_if_the_wait_fits() {
        // Columns: code, `Retry-After`, rejections, timeout; expected seconds, requests, and the wait in the returned
        // error.
        for (code, wait, rejections, within, took, requests, left) in [
            (429, 2, 3, 60, 6, 4, None),
            (503, 2, 3, 60, 6, 4, None),
            (429, 300, 1, 60, 0, 1, Some(300)),
            (503, 300, 1, 60, 0, 1, Some(300)),
            (429, 25, 9, 60, 50, 3, Some(25)),
            (429, 10, 9, 5, 0, 1, Some(10)),
            (429, 1, 99, 60, 9, 10, Some(1)),
            (429, 0, 99, 60, 0, 1, None),
            (503, 0, 99, 60, 0, 1, None),
        ] {
            let (client, n_requests) = busy(code, wait, rejections);
            let begins = Instant::now();
            let deadline = Deadline::from_now(Duration::from_secs(within));
            let response = send_within(&client, &"get it".into(), Method::GET, "/", None, deadline).await;
            let case = format!("{code}, {wait} s, {rejections} times, within {within} s: {response:?}");
            assert_eq!(begins.elapsed().as_secs(), took, "{case}");
            assert_eq!(n_requests.load(Ordering::Relaxed), requests, "{case}");
            assert_eq!(response.err().and_then(|error| error.retry_after()), left.map(Duration::from_secs), "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_start_of_long_errors_is_read() {
        let n_read = Arc::new(AtomicU32::new(0));
        let counted = n_read.clone();
        let service = service_fn(move |_request: Request<Body>| {
            let counted = counted.clone();
            let pieces = futures::stream::repeat_with(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(http_body::Frame::data(bytes::Bytes::from_static(&[b'x'; 1 << 10])))
            });
            let body = http_body_util::StreamBody::new(pieces.take(1 << 20));
            async move { Ok::<_, Infallible>(Response::builder().status(500).body(body).unwrap()) }
        });
        let error = get(&Client::new(service, "default"), &"get it".into(), "/").await.unwrap_err();
        assert_eq!((error.code(), n_read.load(Ordering::Relaxed)), (Some(500), 64));
        assert_eq!(error.to_string(), format!("get it: {} (500)", "x".repeat(500)));
    }

    #[tokio::test(start_paused = true)]
    async fn endless_responses_are_read_up_to_their_bound() {
        for (method, len_max) in [("GET", OBJECT_LEN_MAX), ("DELETE", DELETED_LEN_MAX)] {
            let n_read = Arc::new(AtomicU32::new(0));
            let counted = n_read.clone();
            let piece = bytes::Bytes::from(vec![b'x'; 1 << 20]);
            let service = service_fn(move |_request: Request<Body>| {
                let (counted, piece) = (counted.clone(), piece.clone());
                let pieces = futures::stream::repeat_with(move || {
                    counted.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, Infallible>(http_body::Frame::data(piece.clone()))
                });
                let body = http_body_util::StreamBody::new(pieces.take(1 << 20));
                async move { Ok::<_, Infallible>(Response::new(body)) }
            });
            let client = Client::new(service, "default");
            let sent = send(&client, &"ask it".into(), method.parse().unwrap(), "/", None).await;
            let error = sent.unwrap_err().to_string();
            assert_eq!(error, format!("ask it: the response cannot be read: it is longer than {len_max} bytes"));
            assert_eq!(n_read.load(Ordering::Relaxed) as usize, len_max / (1 << 20) + 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_watch_with_endless_body_times_out() {
        let service = service_fn(|_request: Request<Body>| async {
            let body = http_body_util::StreamBody::new(futures::stream::pending::<Result<_, Infallible>>());
            Ok::<_, Infallible>(Response::builder().status(503).body(body).unwrap())
        });
        let client = Client::new(service, "default");
        let operation = "watch pods".into();
        let opened = open(&client, &operation, "/api/v1/pods?watch=1", JSON);
        let opened = tokio::time::timeout(Duration::from_secs(3_600), opened).await.expect("it ends");
        assert!(matches!(opened, Err(ApiError::NoResponse { .. })), "{:?}", opened.err());
    }

    #[tokio::test(start_paused = true)]
    async fn frozen_process_repeats_no_request_after_its_time() {
        let (client, n_requests) = busy(429, 2, 1);
        let operation = "get it".into();
        let deadline = Deadline::from_now(Duration::from_secs(10));
        let sent = send_within(&client, &operation, Method::GET, "/", None, deadline);
        let mut sent = pin!(sent);
        assert!(futures::poll!(&mut sent).is_pending(), "it waits for the Retry-After");
        tokio::time::advance(Duration::from_secs(15)).await;
        let Poll::Ready(Err(error)) = futures::poll!(&mut sent) else { panic!("it is late") };
        assert!(matches!(error, ApiError::NoResponse { .. }), "{error}");
        assert_eq!(n_requests.load(Ordering::Relaxed), 1);
    }
}
