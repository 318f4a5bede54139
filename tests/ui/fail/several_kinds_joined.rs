//! Kinds are not joined, and are not borrowed.
use kctl::prelude::*;

#[controller(owns = Pod(patch, status) + Service, reads = &Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
