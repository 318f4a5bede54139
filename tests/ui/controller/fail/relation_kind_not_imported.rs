//! The kind of a relation is imported.
use kctl::prelude::*;

#[controller(owns = Ingress)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
