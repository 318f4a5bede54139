//! The first wait comes first.
use kctl::prelude::*;

#[controller(backoff(max = "10s"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
