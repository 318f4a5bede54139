//! `reconcile` takes the kind of `of`.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _pod: Arc<Pod>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
