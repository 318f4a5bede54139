//! Has what may block its thread do so without holding back what else waits for that thread.

use std::{future::poll_fn, pin::pin};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{JoinError, JoinHandle, block_in_place},
};
use tracing::Instrument;

/// Has other tasks of this thread go on elsewhere while a future is polled. With one thread there is no other place.
pub async fn giving_way<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let has_threads = Handle::try_current().is_ok_and(|it| it.runtime_flavor() != RuntimeFlavor::CurrentThread);
    poll_fn(|cx| if has_threads { block_in_place(|| future.as_mut().poll(cx)) } else { future.as_mut().poll(cx) }).await
}

/// Runs a future in a separate task. If it blocks its thread, the caller's timeout still works.
///
/// # Errors
/// The future panicked, or the runtime ends.
///
/// # Cancel safety
/// When the caller is dropped, the future is dropped at its next `.await`; until then it may keep blocking its thread.
pub async fn in_own_task<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, JoinError> {
    let mut task = Task(tokio::spawn(giving_way(future).in_current_span()));
    (&mut task.0).await
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
