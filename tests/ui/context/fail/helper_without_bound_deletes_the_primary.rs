//! A helper that deletes the primary needs a bound.
use kctl::prelude::*;

async fn remove<C>(cx: &Context<C>) -> Result<()> {
    cx.delete().await?;
    Ok(())
}

#[controller(primary(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    remove(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
