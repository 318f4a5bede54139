//! An empty list of namespaces would be all namespaces.
use kctl::prelude::*;

#[controller(namespaces = [])]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
