//! A namespace is listed once.
use kctl::prelude::*;

#[controller(namespaces = ["a", "b", "a"])]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
