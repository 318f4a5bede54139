//! Waits for points in time: the end of a watch, its next bookmark, and the end of a fault.

use std::pin::Pin;

use tokio::time::{Instant, Sleep};

/// A time to wait for, repeatedly and with a single timer.
pub(super) struct Deadline {
    /// The end of the wait, in the time of the runtime.
    pub(super) time: Instant,
    /// Created at the first wait.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Creates a deadline.
    pub(super) fn new(time: Instant) -> Self {
        Self { time, timer: None }
    }

    /// Waits for the time. Cancel safe: the timer is kept, and the next call waits for the same time.
    pub(super) async fn wait(&mut self) {
        let time = self.time;
        self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(time))).await;
    }
}
