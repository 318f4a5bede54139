//! `live` is a flag, not a string.
use kctl::prelude::*;

#[controller(reads = Secret("live"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
