//! The fields of a controller struct are `Send` and `Sync`.
//!
//! Two errors: rustc reports the state that is not `Sync`, and the future of `reconcile`, which borrows it and so is not `Send`.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
pub struct Configs {
    n_seen: std::cell::RefCell<u64>,
}

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        *self.n_seen.borrow_mut() += 1;
        Ok(Action::await_change())
    }
}

fn main() {}
