//! The first duration is required.
use kctl::prelude::*;

#[controller(backoff(max = "10s"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
