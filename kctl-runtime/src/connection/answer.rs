//! The body of an answer: it drives its connection or takes room on it until it ends, and tells it when it was lost.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::{links::Stream, plain::Used};

pub(super) struct Answer {
    /// Dropped before what it came over: a connection whose answer nobody reads to its end is free all the same, if the rest has come.
    body: Incoming,
    on: Option<Stream>,
    over: Option<Used>,
    place: Option<OwnedSemaphorePermit>,
}

impl Answer {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, on: None, over: None, place: None }
    }

    /// That it takes room there.
    pub(super) fn on(self, stream: Stream) -> Self {
        Self { on: Some(stream), ..self }
    }

    /// That it comes over this connection, which is free afterwards.
    pub(super) fn over(self, connection: Used) -> Self {
        Self { over: Some(connection), ..self }
    }

    /// That it takes this place.
    pub(super) fn at(self, place: OwnedSemaphorePermit) -> Self {
        Self { place: Some(place), ..self }
    }
}

impl Answer {
    /// Once there is nothing to come, or the rest is lost.
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
