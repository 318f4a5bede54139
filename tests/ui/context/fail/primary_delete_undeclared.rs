//! `cx.delete()` needs `primary(delete)`.
use kctl::prelude::*;

#[controller(primary(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.delete().await?;
    Ok(Action::await_change())
}

fn main() {}
