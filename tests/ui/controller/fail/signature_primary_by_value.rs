//! The object is an `Arc` from the cache, not a copy.
use kctl::prelude::*;

#[controller]
async fn configs(_config: ConfigMap, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
