//! The first wait of a backoff is the shortest one.
use kctl::prelude::*;

#[controller(backoff("10s", max = "1s"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
