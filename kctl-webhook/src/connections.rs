//! The bounds of a server's connections: how many there are, and how long each waits for its client.
//!
//! A client has one deadline from the moment of the accept to the complete head of its first request, the TLS handshake
//! included, and others for the body of a request and until the next one. At the bound on connections the one that has waited for
//! its client for longest is closed, so that silent clients keep nobody out.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::slots::{Slot, Slots};

/// The bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// A client has this long, from the accept on, for the TLS handshake and the head of its first request.
    pub head_within: Duration,
    /// A client has this long for the bodies of its requests.
    pub body_within: Duration,
    /// After an answer a client has this long to read it and for the whole head of its next request.
    pub idle_max: Duration,
}

/// The connections of one listener.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    slots: Slots,
}

/// One of them, as its server sees it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    slot: Slot,
    limits: Limits,
    activity: Mutex<Activity>,
    changed: Notify,
}

#[derive(Debug)]
struct Activity {
    /// When it may wait for the head of a request no longer.
    head_until: Instant,
    /// Requests whose heads are complete and whose answers are not.
    requests: usize,
    /// Of these, the ones whose bodies are not complete.
    unread: usize,
    /// When the first of those bodies may take no longer.
    body_until: Instant,
}

impl Activity {
    /// Returns how long it may wait for its client; `None` while it works itself.
    fn deadline(&self) -> Option<Instant> {
        match (self.requests, self.unread) {
            (0, _) => Some(self.head_until),
            (requests, unread) if requests > unread => None,
            _ => Some(self.body_until),
        }
    }
}

impl Connections {
    /// Creates the bounds of a listener that has no connections yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, slots: Slots::new(limits.connections) }
    }

    /// Counts a connection that was just accepted. At the bound the one that has waited for its client for longest is
    /// closed; where all have requests to answer, it waits until one of them has answered.
    ///
    /// # Cancel safety
    /// Dropping the future counts nothing.
    pub async fn enter(&self) -> Connection {
        let accepted = Instant::now();
        let slot = self.slots.enter().await;
        let head_until = accepted + self.limits.head_within;
        let activity = Activity { head_until, requests: 0, unread: 0, body_until: accepted };
        Connection(Arc::new(Shared {
            slot,
            limits: self.limits,
            activity: Mutex::new(activity),
            changed: Notify::new(),
        }))
    }
}

impl Connection {
    /// Serves until that ends, the client takes too long, or another one gets its place: then `None`.
    pub async fn limit<T>(&self, serve: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            served = serve => Some(served),
            () = self.expired() => None,
            () = self.0.slot.lost() => None,
        }
    }

    /// Notes a request whose head is complete. It is answered once the first result is dropped; its body is read as the second,
    /// and the client is waited for until that is complete.
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
        let unread = (!is_complete).then(|| Unread(self.clone()));
        (Running(self.clone()), Received { body, unread })
    }

    async fn expired(&self) {
        loop {
            let deadline = self.0.activity.lock().deadline();
            match deadline {
                Some(at) if at <= Instant::now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.0.changed.notified() => {}
                },
                None => self.0.changed.notified().await,
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Activity)) {
        let mut activity = self.0.activity.lock();
        let worked = activity.deadline().is_none();
        change(&mut activity);
        match (worked, activity.deadline().is_none()) {
            (false, true) => self.0.slot.works(),
            (true, false) => self.0.slot.waits(),
            _ => {}
        }
        drop(activity);
        self.0.changed.notify_one();
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub struct Running(Connection);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|activity| {
            activity.requests -= 1;
            activity.head_until = Instant::now() + self.0.0.limits.idle_max;
        });
    }
}

/// A body of a request on its way.
#[derive(Debug)]
pub struct Received<B> {
    body: B,
    /// `None` once it is complete.
    unread: Option<Unread>,
}

#[derive(Debug)]
struct Unread(Connection);

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.change(|activity| activity.unread -= 1);
    }
}

impl<B: Body + Unpin> Body for Received<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || self.body.is_end_stream() {
            self.unread = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;
    use tokio::time::{advance, timeout};

    use super::*;

    const LIMITS: Limits = Limits {
        connections: 2,
        head_within: Duration::from_secs(10),
        body_within: Duration::from_secs(20),
        idle_max: Duration::from_secs(60),
    };

    /// A body of which nothing ever comes.
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
    async fn client_has_a_deadline_for_head_body_and_next_request() {
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
    async fn deadline_of_a_body_counts_while_an_idle_one_is_awaited() {
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
    async fn at_the_bound_half_a_request_gives_way_and_a_whole_one_does_not() {
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
