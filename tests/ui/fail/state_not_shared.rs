//! The state of a controller is used by several threads.
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
