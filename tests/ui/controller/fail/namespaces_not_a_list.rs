//! `namespaces` takes a list.
use kctl::prelude::*;

#[controller(namespaces = "default")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
