//! The body of an answer: it drives its connection or takes room on it until it ends, and tells it when it was lost.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::{driven::Driven, link::Link, links::Stream, plain::Idle};

pub(super) struct Answer {
    body: Incoming,
    on: Option<(Link, Stream)>,
    over: Option<(Driven, Arc<Idle>)>,
    place: Option<OwnedSemaphorePermit>,
}

impl Answer {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, on: None, over: None, place: None }
    }

    /// That it takes room there.
    pub(super) fn on(self, link: Link, stream: Stream) -> Self {
        Self { on: Some((link, stream)), ..self }
    }

    /// That it comes over this connection, which is free afterwards.
    pub(super) fn over(self, connection: Driven, idle: Arc<Idle>) -> Self {
        Self { over: Some((connection, idle)), ..self }
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
        if let Some((connection, idle)) = self.over.take()
            && !is_lost
        {
            idle.keep(connection);
        }
        if let Some((link, _stream)) = self.on.take()
            && is_lost
        {
            link.lost();
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
            Some((connection, _)) => connection.poll(context, |context| body.as_mut().poll_frame(context)),
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
