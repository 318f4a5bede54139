//! The service of a client under faults: requests may be delayed, rejected or lost, and responses may be missing.
//!
//! A request is processed in three steps. The plan picks a fault. It acts before the server sees the request
//! (`before`), changes how the server performs it (stale reads, late requests), or acts on the response (`after`). A
//! crashed client gets no response at all.

use std::{
    convert::Infallible,
    future::pending,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::stream;
use http::{Request, Response, StatusCode, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use tower::Service;

use super::{Connection, Moment, RequestFault, RequestSummary};
use crate::{
    response::{Body, reject},
    stale::{FrequentBookmarks, Stale},
    status::StatusError,
};

/// The error of a request whose connection was reset by a fault.
///
/// A client sees it as a failed connection. The server may have performed the request, depending on the moment of the
/// fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was reset by a fault on purpose")]
pub struct ConnectionResetError;

/// Returns the state that a read gets under this fault, if the fault is about reads. An outdated server answers a
/// request for the newest state with an old one, which a correct server never does.
fn stale_state(fault: RequestFault) -> Option<Stale> {
    match fault {
        RequestFault::Stale { past, lag } => Some(Stale { past, lag, is_outdated: false }),
        RequestFault::Outdated { past, lag } => Some(Stale { past, lag, is_outdated: true }),
        _ => None,
    }
}

/// A service that sends requests to the service `S` under the faults of a plan. `S` is the service of one client of the
/// server: [`ApiServer::faulty`](crate::ApiServer::faulty) puts [`InProcess`](crate::InProcess) under a plan.
///
/// Requests that are not about resources pass without a fault. Clones share the plan and its counts.
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    /// The service behind the faults.
    server: S,
    /// The client, the server and the plan.
    connection: Connection,
}

impl<S> Faulty<S> {
    /// Wraps a service.
    pub(crate) fn new(server: S, connection: Connection) -> Self {
        Self { server, connection }
    }
}

impl<S, B> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = ConnectionResetError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectionResetError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionResetError>> {
        self.server.poll_ready(context).map_err(|never| match never {})
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // Uses the service that was polled ready, because its clone has to be polled again.
        let next = self.server.clone();
        let (mut server, connection) = (mem::replace(&mut self.server, next), self.connection.clone());
        Box::pin(async move {
            alive(&connection).await;
            let summary = RequestSummary::new(&connection, &request);
            let fault = summary.as_ref().and_then(|summary| connection.faults.decide_request(summary));
            if let Some(response) = inject_before(fault, &connection).await {
                return response;
            }
            if let Some(stale) = fault.and_then(stale_state) {
                request.extensions_mut().insert(stale);
            }
            if let Some(RequestFault::Bookmarks { every, lasts }) = fault {
                request.extensions_mut().insert(FrequentBookmarks { every, lasts });
            }
            request.extensions_mut().insert(connection.clone());
            let performed = server.call(request);
            let response = match fault {
                Some(RequestFault::Late(time)) => call_after_delay(performed, time).await?,
                Some(RequestFault::CrashLate(time)) => {
                    connection.disconnect();
                    call_after_delay(performed, time).await?
                }
                _ => performed.await.unwrap_or_else(|never| match never {}),
            };
            inject_after(fault, &connection, response).await
        })
    }
}

/// Waits forever if a fault has killed the process of the connection. Such a process neither sends nor receives
/// anything.
async fn alive(connection: &Connection) {
    if connection.is_dead() {
        pending::<()>().await;
    }
}

/// Performs a fault before the server sees the request. Returns the response if the server never sees it.
async fn inject_before(
    fault: Option<RequestFault>,
    connection: &Connection,
) -> Option<Result<Response<Body>, ConnectionResetError>> {
    match fault? {
        RequestFault::Reject { code, retry_after, moment: Moment::Before } => Some(Ok(status_error(code, retry_after))),
        RequestFault::Reset(Moment::Before) => Some(Err(ConnectionResetError)),
        RequestFault::Delay(time) => {
            tokio::time::sleep(time).await;
            alive(connection).await;
            None
        }
        RequestFault::Crash(Moment::Before) => {
            connection.disconnect();
            pending().await
        }
        _ => None,
    }
}

/// Performs a request after a delay, even if the client no longer waits.
async fn call_after_delay(
    performed: impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    time: Duration,
) -> Result<Response<Body>, ConnectionResetError> {
    let on_its_way = tokio::spawn(async move {
        tokio::time::sleep(time).await;
        performed.await.unwrap_or_else(|never| match never {})
    });
    on_its_way.await.map_err(|_ended| ConnectionResetError)
}

/// Performs a fault after the server has responded. The process may have crashed while the server handled the request.
async fn inject_after(
    fault: Option<RequestFault>,
    connection: &Connection,
    response: Response<Body>,
) -> Result<Response<Body>, ConnectionResetError> {
    alive(connection).await;
    match fault {
        Some(RequestFault::Reject { code, retry_after, moment: Moment::After }) => {
            return Ok(status_error(code, retry_after));
        }
        Some(RequestFault::Reset(Moment::After)) => return Err(ConnectionResetError),
        Some(RequestFault::Half) => return Ok(truncate_body(response).await),
        Some(RequestFault::DelayResponse(time)) => tokio::time::sleep(time).await,
        Some(RequestFault::Crash(Moment::After)) => connection.disconnect(),
        _ => {}
    }
    alive(connection).await;
    Ok(response)
}

/// Returns a response whose body is shorter than its `Content-Length`. The body must not report its length: in debug
/// builds, hyper panics if the body contradicts the header before anything is sent.
async fn truncate_body(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let Some(length) = body.size_hint().exact() else { return Response::from_parts(parts, body) };
    let bytes = body.collect().await.unwrap_or_else(|never| match never {}).to_bytes();
    parts.headers.insert(header::CONTENT_LENGTH, length.into());
    let sent = bytes.slice(..bytes.len() / 2);
    let body = StreamBody::new(stream::once(async { Ok(Frame::data(sent)) }));
    Response::from_parts(parts, body.boxed_unsync())
}

/// Returns the response of a fault with this HTTP status.
fn status_error(code: u16, retry_after: Option<u32>) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = reject(&StatusError::new(status, reason, format!("rejected with {code} by a fault on purpose")));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http_body_util::Full;

    use super::*;
    use crate::faults::Faults;

    #[tokio::test]
    async fn truncated_response_keeps_its_content_length_header() {
        let whole = Response::new(Full::from("0123456789").boxed_unsync());
        let half = truncate_body(whole).await;
        assert_eq!(half.headers()[header::CONTENT_LENGTH], "10");
        assert_eq!(half.body().size_hint().exact(), None);
        assert_eq!(half.into_body().collect().await.unwrap().to_bytes(), "01234");
    }

    #[test]
    fn crashed_process_gets_no_response_to_a_fault() {
        let connection = Faults::seeded(0).connection("app");
        connection.disconnect();
        let reject = RequestFault::Reject { code: 500, retry_after: None, moment: Moment::After };
        for fault in [reject, RequestFault::Reset(Moment::After), RequestFault::Half] {
            let response = Response::new(Full::from("").boxed_unsync());
            assert!(inject_after(Some(fault), &connection, response).now_or_never().is_none(), "{fault:?}");
        }
    }
}
