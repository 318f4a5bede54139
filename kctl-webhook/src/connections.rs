//! The bounds of a server's connections: how many there are, and how long each waits for its
//! client.
//!
//! A client has one deadline from the accept to the complete head of its first request, including
//! the TLS handshake. Further deadlines apply to the body of a request, and to the time until the
//! next one. At the maximum number of connections, the one that has waited for its client the longest is closed. So
//! silent clients lock out no other client (slowloris).
//!
//! ```
//! use std::time::Duration;
//! use kctl_webhook::connections::{Connections, Limits};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let connections = Connections::new(Limits {
//!     connections: 512,
//!     head_within: Duration::from_secs(32),
//!     body_within: Duration::from_secs(30),
//!     idle_max: Duration::from_secs(120),
//! });
//! // For each socket that `accept` returns:
//! let connection = connections.enter().await;
//! let served = connection.limit(async { "served" }).await;
//! assert_eq!(served, Some("served"));
//! # }
//! ```

mod accept;
mod claim;
mod loopback;
mod pieces;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http_body::Body;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use self::claim::UnreadRequest;
pub use self::{
    accept::accept,
    claim::{Received, Running, Sent, Streamed, TrackedBody},
    loopback::loopback_if_unspecified,
    pieces::Pieces,
};
use crate::client_limiter::{ClientLimiter, ClientPermit};

/// The bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections at a time. At the bound, the one that has waited for its client the longest is
    /// closed.
    pub connections: usize,
    /// Time from the accept to the complete head of the first request, including the TLS handshake.
    pub head_within: Duration,
    /// Time for the bodies of requests that are read at the same time, and for the client to read a response.
    pub body_within: Duration,
    /// Time after a response until the complete head of the next request.
    pub idle_max: Duration,
}

/// The connections of one listener.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    limiter: ClientLimiter,
}

/// One connection, as its server sees it. Clones share its state.
#[derive(Clone, Debug)]
pub struct Connection(Arc<ConnectionState>);

/// State that the clones of a [`Connection`] and its running requests share.
#[derive(Debug)]
struct ConnectionState {
    /// Its place among the connections of the listener; dropped with the last clone.
    permit: ClientPermit,
    limits: Limits,
    activity: Mutex<Activity>,
    /// Wakes [`Connection::limit`] to read a changed deadline.
    changed: Notify,
}

/// Counters that decide whether the server waits for its client.
///
/// `unread` can exceed `requests` for a moment: an early response is dropped before the body that it ignored.
#[derive(Debug)]
struct Activity {
    /// Deadline for the head of the next request.
    head_until: Instant,
    /// Number of requests whose heads are complete and whose responses are not.
    requests: usize,
    /// Number of these whose bodies are not complete.
    unread: usize,
    /// Deadline for the first of those bodies.
    body_until: Instant,
    /// Deadlines of the responses that the client has not read to their ends, with their numbers.
    ///
    /// Each response has one: a busy client reads some response at any time, and a stalled one sends further requests.
    unsent: BTreeSet<(Instant, u64)>,
    /// Number of responses so far.
    n_responses: u64,
}

impl Activity {
    /// Returns the deadline of the client; `None` while the server works.
    ///
    /// A server with an unsent response waits for its client, whatever else it does.
    fn deadline(&self) -> Option<Instant> {
        let received = match (self.requests, self.unread) {
            (0, _) => Some(self.head_until),
            (requests, unread) if requests > unread => None,
            _ => Some(self.body_until),
        };
        let Some((sent, _)) = self.unsent.first() else { return received };
        Some(received.map_or(*sent, |received| received.min(*sent)))
    }
}

impl Connections {
    /// Creates the bounds of a listener without connections.
    pub fn new(limits: Limits) -> Self {
        Self { limits, limiter: ClientLimiter::new(limits.connections) }
    }

    /// Counts a connection that was just accepted.
    ///
    /// At the bound, the connection that has waited for its client the longest is closed. If all
    /// have requests to answer, this call waits until one of them has answered.
    ///
    /// # Cancel safety
    /// Dropping the future counts nothing.
    pub async fn enter(&self) -> Connection {
        let accepted = Instant::now();
        let permit = self.limiter.acquire().await;
        let head_until = accepted + self.limits.head_within;
        let activity = Activity {
            head_until,
            requests: 0,
            unread: 0,
            body_until: accepted,
            unsent: BTreeSet::new(),
            n_responses: 0,
        };
        Connection(Arc::new(ConnectionState {
            permit,
            limits: self.limits,
            activity: Mutex::new(activity),
            changed: Notify::new(),
        }))
    }
}

impl Connection {
    /// Runs the connection's future until it ends. Returns `None` if the client takes too long, or
    /// if another client gets its place.
    ///
    /// The future is dropped in that case, which closes the socket.
    pub async fn limit<T>(&self, serve: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            served = serve => Some(served),
            () = self.wait_for_deadline() => None,
            () = self.wait_until_evicted() => None,
        }
    }

    /// Registers a request whose head is complete.
    ///
    /// The request counts as answered once the first value is dropped. Read its body as the second
    /// one: the client's deadline for the body applies until that is complete.
    pub fn begin<B: Body + Unpin>(&self, body: B) -> (Running, Received<B>) {
        let is_complete = body.is_end_stream();
        self.change(|activity| {
            activity.requests += 1;
            if is_complete {
                return;
            }
            if activity.unread == 0 {
                activity.body_until = Instant::now() + self.0.limits.body_within;
            }
            activity.unread += 1;
        });
        let claim = (!is_complete).then(|| UnreadRequest(self.clone()));
        (Running(self.clone()), TrackedBody { body, claim })
    }

    /// Notes that the client has completed the preface of HTTP/2: its first request may take as long as any other.
    ///
    /// Go's server counts so (`http2serverConn.serve` in `net/http/h2_bundle.go`): the preface has a timeout, and
    /// `IdleTimeout` is for a connection without streams.
    pub fn record_preface(&self) {
        self.change(|activity| activity.head_until = Instant::now() + self.0.limits.idle_max);
    }

    /// Waits until another client gets the permit of this connection.
    pub async fn wait_until_evicted(&self) {
        self.0.permit.wait_until_evicted().await;
    }

    /// Waits until a deadline of the client has passed.
    pub async fn wait_for_deadline(&self) {
        loop {
            let deadline = self.0.activity.lock().deadline();
            match deadline {
                Some(end) if end <= Instant::now() => return,
                Some(end) => tokio::select! {
                    () = sleep_until(end) => {}
                    () = self.0.changed.notified() => {}
                },
                None => self.0.changed.notified().await,
            }
        }
    }

    /// Changes the activity, and reports to the permit if the connection starts or stops waiting for
    /// its client.
    fn change(&self, change: impl FnOnce(&mut Activity)) {
        let mut activity = self.0.activity.lock();
        let worked = activity.deadline().is_none();
        change(&mut activity);
        match (worked, activity.deadline().is_none()) {
            (false, true) => self.0.permit.set_busy(),
            (true, false) => self.0.permit.set_idle(),
            _ => {}
        }
        drop(activity);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use http_body::Frame;
    use http_body_util::Empty;
    use tokio::time::{advance, timeout};

    use super::*;

    const LIMITS: Limits = Limits {
        connections: 2,
        head_within: Duration::from_secs(10),
        body_within: Duration::from_secs(20),
        idle_max: Duration::from_secs(60),
    };

    /// A body that never yields a frame.
    struct Never;

    impl Body for Never {
        type Data = &'static [u8];
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
            Poll::Pending
        }
    }

    /// Returns after how many seconds a connection is closed.
    async fn closed_after(connection: &Connection) -> u64 {
        let start = Instant::now();
        assert!(connection.limit(std::future::pending::<()>()).await.is_none());
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn slow_head_body_or_next_request_closes_connection() {
        let connections = Connections::new(LIMITS);
        let connection = connections.enter().await;
        advance(Duration::from_secs(4)).await;
        assert_eq!(closed_after(&connection).await, 6, "since the accept");

        let connection = connections.enter().await;
        let (running, body) = connection.begin(Never);
        assert_eq!(closed_after(&connection).await, 20);
        drop(body);
        let hour = Duration::from_secs(3_600);
        assert!(timeout(hour, closed_after(&connection)).await.is_err(), "the answer is not the client's");
        drop(running);
        assert_eq!(closed_after(&connection).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn streamed_answer_works_until_it_is_dropped() {
        let connection = Connections::new(LIMITS).enter().await;
        advance(Duration::from_secs(9)).await;
        connection.record_preface();
        advance(Duration::from_secs(59)).await;
        let watch = connection.begin(Empty::<&[u8]>::new()).0.until_end_of(Never);
        assert!(timeout(Duration::from_secs(3_600), closed_after(&connection)).await.is_err());
        drop(watch);
        assert_eq!(closed_after(&connection).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn unread_response_closes_a_busy_connection() {
        let connection = Connections::new(LIMITS).enter().await;
        let page = connection.begin(Empty::<&[u8]>::new()).0.until_sent(Never);
        advance(Duration::from_secs(15)).await;
        drop(connection.begin(Empty::<&[u8]>::new()).0.until_sent(Never));
        let _running = connection.begin(Empty::<&[u8]>::new()).0;
        assert_eq!(closed_after(&connection).await, 5, "since the first response");
        let next = connection.begin(Empty::<&[u8]>::new()).0.until_sent(Never);
        drop(page);
        assert_eq!(closed_after(&connection).await, 20, "since the response that is left");
        drop(next);
        assert!(timeout(Duration::from_secs(3_600), closed_after(&connection)).await.is_err(), "the server works");
    }

    #[tokio::test(start_paused = true)]
    async fn new_request_body_replaces_the_idle_deadline() {
        let connection = Connections::new(LIMITS).enter().await;
        drop(connection.begin(Empty::<&[u8]>::new()));
        let waits = tokio::spawn({
            let connection = connection.clone();
            async move { closed_after(&connection).await }
        });
        tokio::task::yield_now().await;
        advance(Duration::from_secs(1)).await;
        let _half = connection.begin(Never);
        assert_eq!(waits.await.unwrap(), 21);
    }

    #[tokio::test(start_paused = true)]
    async fn full_listener_closes_incomplete_requests_only() {
        let connections = Connections::new(LIMITS);
        let (half, whole) = (connections.enter().await, connections.enter().await);
        advance(Duration::from_secs(1)).await;
        let (_running, _body) = half.begin(Never);
        let _answering = whole.begin(Empty::<&[u8]>::new());
        let third = connections.enter().await;
        assert_eq!(closed_after(&half).await, 0);
        let _answering = third.begin(Empty::<&[u8]>::new());
        assert!(timeout(Duration::from_secs(3_600), connections.enter()).await.is_err(), "both have work to do");
    }
}
