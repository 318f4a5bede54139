//! A complete response body that a server takes in pieces.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A complete response body that a server takes in pieces, as its client reads them.
///
/// In one piece, hyper would take it as soon as the client has room for its first byte. The body would then be dropped
/// while all of it waits in memory.
///
/// ```
/// use http_body_util::BodyExt;
/// use kctl_webhook::connections::Pieces;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut body = Pieces::new("x".repeat(20_000));
/// let first = body.frame().await.unwrap().unwrap();
/// assert_eq!(first.into_data().unwrap().len(), 16 << 10);
/// # }
/// ```
#[derive(Debug)]
pub struct Pieces(Bytes);

/// Bytes of one piece; the frames of HTTP/2 are as long.
const PIECE_LEN: usize = 16 << 10;

impl Pieces {
    /// Creates the body.
    pub fn new(whole: impl Into<Bytes>) -> Self {
        Self(whole.into())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let len = self.0.len().min(PIECE_LEN);
        Poll::Ready((len > 0).then(|| Ok(Frame::data(self.0.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
