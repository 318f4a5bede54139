//! The context itself creates nothing.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.create(Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
