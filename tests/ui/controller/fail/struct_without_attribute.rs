//! `impl Reconcile` needs `#[controller]` on the struct.
//!
//! Three errors: rustc checks the supertrait of `Reconcile` at the `impl`, and once more in each signature that names its
//! associated type, in the trait and in the `impl`.
use kctl::prelude::*;

struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
