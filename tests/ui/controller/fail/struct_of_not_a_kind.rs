//! `of` takes a Kubernetes kind.
use kctl::prelude::*;

#[controller(of = String)]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<String>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
