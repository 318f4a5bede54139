//! The kind of a struct is not an `Arc` of it.
use kctl::prelude::*;

#[controller(of = Arc<ConfigMap>)]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
