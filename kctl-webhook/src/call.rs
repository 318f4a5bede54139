//! Calls of user code: a panic becomes an error response.

use std::{any::Any, future::poll_fn, panic::AssertUnwindSafe, pin::Pin, task::Poll};

use crate::{metrics::Measurement, server::request};

/// A request of admission or conversion in progress.
pub(crate) type RequestState = request::RequestState<Measurement>;

pub(crate) type CallFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The name and source location of a function, for error messages and logs.
///
/// ```
/// use kctl_webhook::FunctionInfo;
///
/// let about = FunctionInfo::new("rules", "src/main.rs", 12);
/// assert_eq!(about.name, "rules");
/// assert_eq!(about.location(), "src/main.rs:12");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The name of the function.
    pub name: &'static str,
    file: &'static str,
    line: u32,
}

impl FunctionInfo {
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

/// Calls a function and catches its panic, which is logged with the object of the call.
///
/// # Errors
/// The function panicked: the message has the function's location.
pub(crate) async fn catch_unwind<T>(
    about: FunctionInfo,
    object: &str,
    call: impl FnOnce() -> CallFuture<T>,
) -> Result<T, String> {
    let failed = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = format!("panic in {}: {}", about.named_location(), text.unwrap_or("without a message"));
        tracing::error!(object, "{text}");
        text
    };
    let mut called = std::panic::catch_unwind(AssertUnwindSafe(call)).map_err(failed)?;
    let polled = poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    });
    polled.await.map_err(failed)
}
