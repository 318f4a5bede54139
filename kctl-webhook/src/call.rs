//! Calls of user code: a panic becomes an error response.

use std::pin::Pin;

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
    let called = crate::panic::catch_unwind(call).await;
    called.map_err(|message| {
        let text = format!("panic in {}: {message}", about.named_location());
        tracing::error!(object, "{text}");
        text
    })
}
