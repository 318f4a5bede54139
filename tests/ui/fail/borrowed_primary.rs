//! The object is shared with the cache, not borrowed.
use kctl::prelude::*;

#[controller]
async fn configs(_config: &ConfigMap, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
