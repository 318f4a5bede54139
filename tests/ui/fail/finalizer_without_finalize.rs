//! Who holds objects back must let them go.
use kctl::prelude::*;

#[controller(of = ConfigMap, finalizer = "example.com/configs")]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
