//! A helper that writes the status of whatever is reconciled.
use kctl::prelude::*;

async fn tell<C: Controller>(cx: &Context<C>) -> Result<()> {
    cx.patch_status("ready").await?;
    Ok(())
}

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    tell(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
