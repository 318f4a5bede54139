//! Only owned objects have an owner reference.
use kctl::prelude::*;

#[controller(reads = Pod(block_owner_deletion))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
