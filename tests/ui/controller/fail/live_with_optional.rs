//! A kind without a cache needs no `optional`.
use kctl::prelude::*;

#[controller(reads = Secret(live, optional))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
