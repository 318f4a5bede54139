//! Runs futures that may block without stalling other tasks on the same thread (`block_in_place`).
//!
//! Code of users blocks: it computes for seconds, or calls a synchronous client. On Tokio that
//! stalls every task of the thread, including the timeout that should have ended the call.

use std::{future::poll_fn, pin::pin};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{JoinError, JoinHandle, block_in_place},
};
use tracing::Instrument;

/// Runs a future that may block, and moves other tasks of this thread elsewhere while it is polled.
///
/// On a current-thread runtime there is no other thread, so the future runs as it is.
///
/// ```
/// use kctl_webhook::blocking::allow_blocking;
///
/// # #[tokio::main]
/// # async fn main() {
/// let answer = allow_blocking(async { (1..=1_000_u64).sum::<u64>() }).await;
/// assert_eq!(answer, 500_500);
/// # }
/// ```
///
/// # Panics
/// In a `LocalSet` on a multi-thread runtime, because Tokio rejects `block_in_place` there, and offers no way to detect
/// it (`disallow_block_in_place` in tokio's `src/task/local.rs`). Use a current-thread runtime for a `LocalSet`, or call
/// this in a task of `tokio::spawn`.
///
/// # Cancel safety
/// Dropping the future drops the inner one.
pub async fn allow_blocking<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let has_threads = Handle::try_current().is_ok_and(|it| it.runtime_flavor() != RuntimeFlavor::CurrentThread);
    poll_fn(|cx| if has_threads { block_in_place(|| future.as_mut().poll(cx)) } else { future.as_mut().poll(cx) }).await
}

/// Runs a future in a separate task. On a multi-threaded runtime, the caller's timeout still works if the future blocks
/// its thread.
///
/// The task inherits the current `tracing` span.
///
/// ```
/// use std::time::Duration;
/// use kctl_webhook::blocking::in_own_task;
///
/// # #[tokio::main]
/// # async fn main() {
/// assert_eq!(in_own_task(async { 42 }).await.unwrap(), 42);
/// // A panic is an error, not the end of the caller:
/// assert!(in_own_task(async { panic!("bug") }).await.is_err());
/// // A timeout works although the future never ends:
/// let never = in_own_task(std::future::pending::<()>());
/// assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
/// # }
/// ```
///
/// # Errors
/// The future panicked, or the runtime ends.
///
/// # Cancel safety
/// When the caller is dropped, the future is dropped at its next `.await`; until then it may keep
/// blocking its thread.
pub async fn in_own_task<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, JoinError> {
    let mut task = Task(tokio::spawn(allow_blocking(future).in_current_span()));
    (&mut task.0).await
}

/// A task that is aborted when its handle is dropped.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
