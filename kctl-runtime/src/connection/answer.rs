//! The body of a response, which holds the resources of its request until it ends.
//!
//! An HTTP/1.1 body polls its connection; an HTTP/2 body occupies a stream; a long list occupies a place.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::{links::Stream, plain::Used};

/// The body of a response.
pub(super) struct Answer {
    /// Dropped first, so that a connection is free if the rest of an unread body has arrived.
    body: Incoming,
    on: Option<Stream>,
    over: Option<Used>,
    place: Option<OwnedSemaphorePermit>,
}

impl Answer {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, on: None, over: None, place: None }
    }

    /// Occupies this stream until the body ends.
    pub(super) fn on(self, stream: Stream) -> Self {
        Self { on: Some(stream), ..self }
    }

    /// Comes over this connection, which is free afterwards.
    pub(super) fn over(self, connection: Used) -> Self {
        Self { over: Some(connection), ..self }
    }

    /// Occupies this place until the body ends.
    pub(super) fn at(self, place: OwnedSemaphorePermit) -> Self {
        Self { place: Some(place), ..self }
    }
}

impl Answer {
    /// Releases everything once the body ended or broke off.
    fn end(&mut self, is_lost: bool) {
        self.place = None;
        self.over = None;
        if let Some(stream) = self.on.take()
            && is_lost
        {
            stream.lost();
        }
    }
}

impl Body for Answer {
    type Data = <Incoming as Body>::Data;
    type Error = <Incoming as Body>::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let answer = self.get_mut();
        let mut body = Pin::new(&mut answer.body);
        let frame = ready!(match &mut answer.over {
            Some(connection) => connection.poll(context, |context| body.as_mut().poll_frame(context)),
            None => body.poll_frame(context),
        });
        match &frame {
            Some(Err(_)) => answer.end(true),
            None => answer.end(false),
            // Who knows the length asks for no more.
            Some(Ok(_)) if answer.body.is_end_stream() => answer.end(false),
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
