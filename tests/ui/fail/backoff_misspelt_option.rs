//! An option that is nearly right.
use kctl::prelude::*;

#[controller(backoff("5ms", maximum = "10s"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
