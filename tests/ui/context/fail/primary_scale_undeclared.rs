//! `cx.scale()` needs `primary(scale)`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.scale(3).await?;
    Ok(Action::await_change())
}

fn main() {}
