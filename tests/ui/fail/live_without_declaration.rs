//! A live read of a kind that is not declared.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _secret = cx.live::<Secret>().get("password").await?;
    Ok(Action::await_change())
}

fn main() {}
