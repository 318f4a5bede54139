//! The primary is cached and triggers without a relation.
use kctl::prelude::*;

#[controller(reads = ConfigMap)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
