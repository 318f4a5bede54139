//! Owned objects are deleted one by one.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().delete_collection(None, "app=web").await?;
    Ok(Action::await_change())
}

fn main() {}
