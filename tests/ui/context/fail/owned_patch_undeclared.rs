//! `create` does not allow `patch`.
use kctl::prelude::*;

#[controller(owns = Pod(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().patch(&Pod::default(), kctl::json!({})).await?;
    Ok(Action::await_change())
}

fn main() {}
