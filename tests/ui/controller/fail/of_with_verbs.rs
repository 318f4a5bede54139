//! Verbs on the primary are in `primary(…)`.
use kctl::prelude::*;

#[controller(of = ConfigMap(patch))]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
