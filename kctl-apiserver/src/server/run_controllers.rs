//! Runs the controllers of a server as a task: after each change, one object at a time under the server's lock.
//!
//! The controllers of `controllers/` are steps of this one task, not tasks themselves. The order of
//! their steps is thus a function of the changes, which makes a simulation repeatable.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::state::State;

/// Runs the controllers until the future is dropped. They react to a change after `delay`. With a delay, a controller
/// reacts as late as one behind a watch, so that tests see the intermediate states. Without one, it works until its
/// queues are empty.
pub(super) async fn run(state: Arc<Mutex<State>>, delay: Duration) {
    let mut changes = state.lock().store.changes();
    loop {
        changes.borrow_and_update();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        // Processes only the work that is queued now. Work that it causes waits for the next delay.
        let mut left = if delay.is_zero() { usize::MAX } else { state.lock().pending().max(1) };
        while left > 0 && state.lock().step_controllers() {
            left -= 1;
            // Other tasks run between two objects.
            tokio::task::yield_now().await;
        }
        if left > 0 && changes.changed().await.is_err() {
            return;
        }
    }
}
