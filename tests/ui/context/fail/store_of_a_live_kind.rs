//! A kind that is read live has no cache.
use kctl::prelude::*;

#[controller(reads = Secret(live))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _secrets = cx.store::<Secret>();
    Ok(Action::await_change())
}

fn main() {}
