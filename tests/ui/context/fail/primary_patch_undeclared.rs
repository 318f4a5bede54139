//! `cx.patch()` needs `primary(patch)`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.patch(kctl::json!({ "data": { "a": "b" } })).await?;
    Ok(Action::await_change())
}

fn main() {}
