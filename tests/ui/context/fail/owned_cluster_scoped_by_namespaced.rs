//! A namespaced owner can't own a cluster-scoped object.
use kctl::prelude::*;

#[controller(owns = Node)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
