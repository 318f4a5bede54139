//! The option is `max`, not `maximum`.
use kctl::prelude::*;

#[controller(backoff("5ms", maximum = "10s"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
