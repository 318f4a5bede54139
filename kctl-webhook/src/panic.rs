//! Catches the panic of a function of the user, so that it fails one request and not the program.

use std::{any::Any, future::poll_fn, panic::AssertUnwindSafe, pin::Pin, task::Poll};

/// Calls an async function and returns its result. A panic is caught, whether the function panics in the call or in a poll.
///
/// ```
/// use kctl_webhook::panic::catch_unwind;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// async fn n_pages(site: &str) -> usize {
///     assert!(site == "web", "no such site");
///     3
/// }
/// assert_eq!(catch_unwind(|| Box::pin(n_pages("web"))).await, Ok(3));
/// assert_eq!(catch_unwind(|| Box::pin(n_pages("shop"))).await, Err("no such site".to_owned()));
/// # }
/// ```
///
/// # Errors
/// The function panicked: the error is the message of the panic.
///
/// # Cancel safety
/// Dropping the future drops the function's future.
pub async fn catch_unwind<'a, T>(
    call: impl FnOnce() -> Pin<Box<dyn Future<Output = T> + Send + 'a>>,
) -> Result<T, String> {
    let text = |panic: Box<dyn Any + Send>| message(&*panic);
    let mut called = std::panic::catch_unwind(AssertUnwindSafe(call)).map_err(text)?;
    let polled = poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    });
    polled.await.map_err(text)
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
