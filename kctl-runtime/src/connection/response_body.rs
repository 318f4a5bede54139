//! The body of a response, which holds the resources of its request until it ends.
//!
//! An HTTP/1.1 body polls its connection; an HTTP/2 body occupies a stream; a long list keeps a permit.
//!
//! A caller of `kube::Client` holds only the body, for as long as it reads. So everything that must live as long
//! as a response is a field of [`ResponseBody`], and dropping the body releases it. A caller that drops a watch
//! therefore gives its stream back at once.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::{h1_idle::UsedConnection, h2_stream::Stream};

/// The body of a response.
///
/// At most one of `stream` and `connection` is set: the response comes over a stream of a shared connection, or over a
/// connection of its request alone. An upgraded connection has neither, because its task keeps it.
pub(super) struct ResponseBody {
    /// Dropped first, so that a connection is free if the rest of an unread body has arrived.
    body: Incoming,
    /// HTTP/2: keeps the stream counted until the body ends.
    stream: Option<Stream>,
    /// HTTP/1.1: the connection, which this body has to poll.
    connection: Option<UsedConnection>,
    /// Permit of one of the long lists over HTTP/1.1 that may run at once.
    list_permit: Option<OwnedSemaphorePermit>,
}

impl ResponseBody {
    /// Creates a body that holds nothing else yet.
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, stream: None, connection: None, list_permit: None }
    }

    /// Occupies this stream until the body ends.
    pub(super) fn with_stream(self, stream: Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Reads the body from this HTTP/1.1 connection, which is free afterwards.
    pub(super) fn with_connection(self, connection: UsedConnection) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// Keeps the permit of a long list until the body ends.
    pub(super) fn with_list_permit(self, permit: OwnedSemaphorePermit) -> Self {
        Self { list_permit: Some(permit), ..self }
    }
}

impl ResponseBody {
    /// Releases everything once the body ended.
    fn end(&mut self) {
        self.list_permit = None;
        self.connection = None;
        self.stream = None;
    }

    /// Releases everything after a read error.
    ///
    /// On a shared connection that error is the first sign that the connection is dead, so the next request opens a new
    /// one instead of failing as well.
    fn fail(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.mark_lost();
        }
        self.end();
    }
}

impl Body for ResponseBody {
    type Data = <Incoming as Body>::Data;
    type Error = <Incoming as Body>::Error;

    /// Reads the next piece, and drives the HTTP/1.1 connection while it waits.
    ///
    /// Resources are released with the last piece, not with the `None` after it. A caller that knows the length of the
    /// body never asks for that `None`.
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let response = self.get_mut();
        let mut body = Pin::new(&mut response.body);
        let frame = ready!(match &mut response.connection {
            Some(connection) => connection.poll(context, |context| body.as_mut().poll_frame(context)),
            None => body.poll_frame(context),
        });
        match &frame {
            Some(Err(_)) => response.fail(),
            None => response.end(),
            // A caller that knows the length of the body does not poll again.
            Some(Ok(_)) if response.body.is_end_stream() => response.end(),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
