//! `cx.get()` needs `primary(get)`.
use kctl::prelude::*;

#[controller(primary(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _fresh = cx.get().await?;
    Ok(Action::await_change())
}

fn main() {}
