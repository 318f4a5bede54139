//! The body of an answer: it takes room on its connection until it ends, and tells it when it was lost.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::{link::Link, links::Stream};

pub(super) struct Answer {
    body: Incoming,
    on: Option<(Link, Stream)>,
    place: Option<OwnedSemaphorePermit>,
}

impl Answer {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, on: None, place: None }
    }

    /// That it takes room there.
    pub(super) fn on(self, link: Link, stream: Stream) -> Self {
        Self { on: Some((link, stream)), ..self }
    }

    /// That it takes this place.
    pub(super) fn at(self, place: OwnedSemaphorePermit) -> Self {
        Self { place: Some(place), ..self }
    }
}

impl Body for Answer {
    type Data = <Incoming as Body>::Data;
    type Error = <Incoming as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let None | Some(Err(_)) = &frame {
            self.place = None;
            if let Some((link, _stream)) = self.on.take()
                && frame.is_some()
            {
                link.lost();
            }
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
