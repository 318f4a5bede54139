//! Has what may block its thread do so without holding back what else waits for that thread.

use std::{future::poll_fn, pin::pin};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Has other tasks of this thread go on elsewhere while a future is polled. With one thread there is no other place.
pub(crate) async fn giving_way<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let has_threads = Handle::try_current().is_ok_and(|it| it.runtime_flavor() != RuntimeFlavor::CurrentThread);
    poll_fn(|cx| if has_threads { block_in_place(|| future.as_mut().poll(cx)) } else { future.as_mut().poll(cx) }).await
}
