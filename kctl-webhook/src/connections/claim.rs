//! Requests and bodies that count for a connection until they are dropped or complete: they decide whether the server waits
//! for its client.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::Connection;

/// A request that is not answered yet. Dropping it starts the time until the next request.
#[derive(Debug)]
pub struct Running(pub(super) Connection);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|activity| {
            activity.requests -= 1;
            activity.head_until = Instant::now() + self.0.0.limits.idle_max;
        });
    }
}

impl Running {
    /// Keeps the request unanswered until this body is dropped.
    pub fn until_end_of<B>(self, body: B) -> Streamed<B> {
        TrackedBody { body, claim: Some(self) }
    }

    /// Ends the request, and gives the client [`Limits::body_within`](super::Limits::body_within) to read the response: until this body is dropped.
    ///
    /// An unread response is kept in memory. So requests on other streams of the connection don't extend the time.
    pub fn until_sent<B>(self, body: B) -> Sent<B> {
        let until = Instant::now() + self.0.0.limits.body_within;
        let mut id = (until, 0);
        self.0.change(|activity| {
            activity.n_responses += 1;
            id.1 = activity.n_responses;
            activity.unsent.insert(id);
        });
        TrackedBody { body, claim: Some(UnsentResponse { connection: self.0.clone(), id }) }
    }
}

/// The part of a request that lasts as long as a body.
trait Claim: Unpin {
    /// The time at which the claim ends.
    const ENDS: Ends;
}

#[derive(PartialEq, Eq)]
enum Ends {
    /// With the last frame of the body, or its error.
    WithTheLastFrame,
    /// When the server drops the body. A response is sent only then.
    WhenDropped,
}

impl Claim for Running {
    const ENDS: Ends = Ends::WhenDropped;
}

/// A request whose body is not complete.
#[derive(Debug)]
pub struct UnreadRequest(pub(super) Connection);

impl Claim for UnreadRequest {
    const ENDS: Ends = Ends::WithTheLastFrame;
}

impl Drop for UnreadRequest {
    fn drop(&mut self) {
        self.0.change(|activity| activity.unread -= 1);
    }
}

/// A response that its client has not read to its end.
#[derive(Debug)]
pub struct UnsentResponse {
    connection: Connection,
    /// Its deadline and number.
    id: (Instant, u64),
}

impl Claim for UnsentResponse {
    const ENDS: Ends = Ends::WhenDropped;
}

impl Drop for UnsentResponse {
    fn drop(&mut self) {
        self.connection.change(|activity| _ = activity.unsent.remove(&self.id));
    }
}

/// A body that counts for its connection until its claim ends. See [`Received`], [`Sent`] and [`Streamed`].
#[derive(Debug)]
pub struct TrackedBody<B, C> {
    pub(super) body: B,
    /// `None` once the claim has ended.
    pub(super) claim: Option<C>,
}

/// A request body that is being received.
pub type Received<B> = TrackedBody<B, UnreadRequest>;

/// A response body that lasts, such as a watch: its request counts as unanswered until the body is dropped.
pub type Streamed<B> = TrackedBody<B, Running>;

/// A response body that is complete, and that the client has to read in time.
pub type Sent<B> = TrackedBody<B, UnsentResponse>;

impl<B: Body + Unpin, C: Claim> Body for TrackedBody<B, C> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let is_last = matches!(polled, Poll::Ready(None | Some(Err(_)))) || self.body.is_end_stream();
        if is_last && C::ENDS == Ends::WithTheLastFrame {
            self.claim = None;
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
