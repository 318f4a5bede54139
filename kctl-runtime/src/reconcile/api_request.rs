//! Requests: permitted operations that are sent when they are awaited.

use std::{
    pin::Pin,
    task::{self, Poll},
};

use crate::writer::ApiError;

/// An operation on the API server. Nothing is sent until it is awaited.
///
/// A write returns the object in the API server's response. The cache has it by then, so later reads in the same
/// reconcile see it. [`Live`](super::Live) reads and [`Context::get`](super::Context::get) leave the cache unchanged.
///
/// Operations are methods that return this type rather than `async fn`s, because rustc reports an unmet bound of an
/// `async fn` three times.
///
/// # Cancel safety
/// After the first poll, a dropped write may or may not take effect; the watch reports it if it does.
#[must_use = "nothing is sent until the request is awaited: append `.await?`"]
pub struct ApiRequest<T> {
    pub(crate) future: Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send>>,
}

impl<T> std::fmt::Debug for ApiRequest<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiRequest").finish_non_exhaustive()
    }
}

impl<T> ApiRequest<T> {
    pub(crate) fn new(future: impl Future<Output = Result<T, ApiError>> + Send + 'static) -> Self {
        Self { future: Box::pin(future) }
    }
}

// `Future` instead of `IntoFuture`, so that rustc points at a missing `.await`.
impl<T> Future for ApiRequest<T> {
    type Output = Result<T, ApiError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(cx)
    }
}
