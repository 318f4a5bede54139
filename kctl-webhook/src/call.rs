//! Calls of user code: a panic is an answer, not the end of a connection.

use std::{any::Any, future::poll_fn, panic::AssertUnwindSafe, pin::Pin, task::Poll};

/// What a function returns once it is called.
pub(crate) type Called<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Which function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    file: &'static str,
    line: u32,
}

impl About {
    /// Says which function it is, and where it stands.
    pub fn new(name: &'static str, file: &'static str, line: u32) -> Self {
        Self { name, file, line }
    }

    /// Returns the file and the line.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// `` `name` (file:line) ``, for messages.
    pub(crate) fn place(&self) -> String {
        format!("`{}` ({})", self.name, self.location())
    }
}

/// Waits for what `call` begins.
///
/// # Errors
/// It panicked: with what, in words.
pub(crate) async fn unwound<T>(about: About, call: impl FnOnce() -> Called<T>) -> Result<T, String> {
    let failed = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = format!("panic in {}: {}", about.place(), text.unwrap_or("without a text"));
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
