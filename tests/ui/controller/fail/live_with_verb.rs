//! What is read live is only read: a write needs the cache, which takes its result in.
use kctl::prelude::*;

#[controller(reads = Secret(live, patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let secret = cx.live::<Secret>().get("password").await?;
    cx.objects::<Secret>().patch(&secret, kctl::json!({ "immutable": true })).await?;
    Ok(Action::await_change())
}

fn main() {}
