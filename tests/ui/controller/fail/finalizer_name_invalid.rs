//! API servers accept qualified names as finalizers.
use kctl::prelude::*;

#[controller(of = ConfigMap, finalizer = "example.com/clean up")]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Configs {
    async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
