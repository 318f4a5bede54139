//! A duration has no space before its unit.
use kctl::prelude::*;

#[controller(backoff("5 ms"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
