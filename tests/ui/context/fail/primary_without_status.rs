//! A `ConfigMap` has no status.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.patch_status(kctl::json!({ "ready": 3 })).await?;
    Ok(Action::await_change())
}

fn main() {}
