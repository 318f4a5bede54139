//! `reads = Kind` gives a cache and no live reads.
use kctl::prelude::*;

#[controller(reads = Secret)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _secret = cx.live::<Secret>().get("password").await?;
    Ok(Action::await_change())
}

fn main() {}
