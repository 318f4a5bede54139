//! The kind of a struct is `of`.
use kctl::prelude::*;

#[controller(kind = ConfigMap)]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
