//! A write that has been permitted and is sent when it is awaited.

use std::{
    pin::Pin,
    task::{self, Poll},
};

use crate::effect::ApiError;

/// An operation on the API server: nothing is sent until it is awaited.
///
/// Operations are plain methods that return this, because rustc reports an unmet bound on an `async fn` three times.
///
/// # Cancel safety
/// Dropping it after the first poll leaves it unknown whether the write took effect; the watch tells.
#[must_use = "nothing is sent until the request is awaited"]
pub struct Request<T> {
    pub(crate) future: Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send>>,
}

impl<T> Request<T> {
    pub(crate) fn new(future: impl Future<Output = Result<T, ApiError>> + Send + 'static) -> Self {
        Self { future: Box::pin(future) }
    }
}

// A future itself, not what becomes one: with this, rustc says that `.await` is missing where it is.
impl<T> Future for Request<T> {
    type Output = Result<T, ApiError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(cx)
    }
}
