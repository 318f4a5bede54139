//! Calls of user code: a panic becomes an error response, and a blocked thread holds back no other
//! request.

use std::{any::Any, future::poll_fn, panic::AssertUnwindSafe, pin::Pin, sync::Arc, task::Poll};

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    blocking::in_own_task,
    metrics::{Measurement, Running},
    server::{body::Progress, memory::Held},
};

/// The future of a called function.
pub(crate) type Called<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The name and source location of a function, for error messages and logs.
///
/// ```
/// use kctl_webhook::About;
///
/// let about = About::new("rules", "src/main.rs", 12);
/// assert_eq!(about.name, "rules");
/// assert_eq!(about.location(), "src/main.rs:12");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name of the function.
    pub name: &'static str,
    file: &'static str,
    line: u32,
}

impl About {
    /// Creates the description of a function. Pass `file!()` and `line!()`.
    pub fn new(name: &'static str, file: &'static str, line: u32) -> Self {
        Self { name, file, line }
    }

    /// Returns the location as `file:line`.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Returns `` `name` (file:line) `` for messages.
    pub(crate) fn named_location(&self) -> String {
        format!("`{}` ({})", self.name, self.location())
    }
}

/// A request in progress, shared by the code that answers it and the code that gives it up at the
/// timeout.
pub(crate) struct RequestState {
    pub(crate) measurement: Measurement,
    /// The uid of the review, once it is read. An API server ignores a response without it.
    pub(crate) uid: String,
    /// A description of the running function and its object, for the message of a timeout.
    pub(crate) running: Arc<Mutex<Option<String>>>,
    /// The place among the running requests; `None` while it waits. Its functions keep it until
    /// they end.
    pub(crate) permit: Option<Arc<OwnedSemaphorePermit>>,
    /// The bytes of the body; `None` until it is read. Its functions keep them until they end, and the response until
    /// it is sent.
    pub(crate) memory: Option<Arc<Held>>,
    /// The phase of the request, for the message of a timeout.
    pub(crate) progress: Progress,
}

impl RequestState {
    /// Calls functions in a separate task.
    ///
    /// A function that blocks its thread delays neither the timeout of its request nor other
    /// requests, and keeps its place among the running ones. Any other function is dropped when the
    /// request is given up.
    ///
    /// # Errors
    /// The process ends. A panic of a function is an error of [`unwound`].
    pub(crate) async fn call<T, Fut>(&self, call: impl FnOnce(Running) -> Fut) -> Result<T, String>
    where
        T: Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        let kept = (self.permit.clone(), self.memory.clone());
        let called = call(self.measurement.running());
        let called = async move {
            let answer = called.await;
            drop(kept);
            answer
        };
        in_own_task(called).await.map_err(|error| error.to_string())
    }
}

/// Calls a function and catches its panic.
///
/// # Errors
/// The function panicked: the message has the function's location.
pub(crate) async fn unwound<T>(about: About, call: impl FnOnce() -> Called<T>) -> Result<T, String> {
    let failed = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = format!("panic in {}: {}", about.named_location(), text.unwrap_or("without a text"));
        tracing::error!("{text}");
        text
    };
    let mut called = std::panic::catch_unwind(AssertUnwindSafe(call)).map_err(failed)?;
    let polled = poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    });
    polled.await.map_err(failed)
}
