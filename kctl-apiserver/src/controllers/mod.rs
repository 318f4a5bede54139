//! What a cluster's controller manager does for every kind: garbage collection by owner references, the end of
//! namespaces and of definitions, and roles that are put together from others.

pub(crate) mod definitions;
mod garbage;
mod namespaces;
pub(crate) mod quotas;
mod roles;
mod write;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

pub(crate) use garbage::Garbage;
pub(crate) use roles::aggregated;

use crate::store::State;

/// How much is left to look at.
pub(crate) fn pending(state: &Mutex<State>) -> usize {
    let mut state = state.lock();
    state.owners().n_suspects()
        + usize::from(state.roles_changed)
        + state.names_freed.len()
        + state.quotas_touched.len()
}

impl Garbage {
    /// Works until it is dropped: so long after a change.
    pub(crate) async fn run(self, delay: Duration) {
        let mut changes = self.state().lock().changes();
        loop {
            changes.borrow_and_update();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            // What comes up meanwhile has its turn after the next delay.
            let mut left = if delay.is_zero() { usize::MAX } else { pending(self.state()).max(1) };
            while left > 0 && self.step() {
                left -= 1;
                // Others get their turn between two objects.
                tokio::task::yield_now().await;
            }
            if left > 0 && changes.changed().await.is_err() {
                return;
            }
        }
    }
}

pub(crate) type Shared = Arc<Mutex<State>>;
