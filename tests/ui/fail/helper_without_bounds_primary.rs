//! A helper that names no bound for what it does with the primary.
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
