//! A kind without a cache has no `metadata` form.
use kctl::prelude::*;

#[controller(reads = Secret(live, metadata))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
