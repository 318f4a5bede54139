//! A kind that is read live is not written: the result of a write goes into the cache.
use kctl::prelude::*;

#[controller(reads = Secret(live, patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let secret = cx.live::<Secret>().get("password").await?;
    cx.objects::<Secret>().patch(&secret, kctl::json!({ "immutable": true })).await?;
    Ok(Action::await_change())
}

fn main() {}
