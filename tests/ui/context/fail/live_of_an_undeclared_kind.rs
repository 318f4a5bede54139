//! A live read needs `reads = Kind(live)`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _secret = cx.live::<Secret>().get("password").await?;
    Ok(Action::await_change())
}

fn main() {}
