//! The body of an answer: it takes room on its connection until it ends, and tells it when it was lost.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{link::Link, links::Stream};

pub(super) struct Answer {
    body: Incoming,
    on: Option<(Link, Stream)>,
}

impl Answer {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, on: None }
    }

    /// That it takes room there.
    pub(super) fn on(self, link: Link, stream: Stream) -> Self {
        Self { on: Some((link, stream)), ..self }
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
        if let None | Some(Err(_)) = &frame
            && let Some((link, _stream)) = self.on.take()
            && frame.is_some()
        {
            link.lost();
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
