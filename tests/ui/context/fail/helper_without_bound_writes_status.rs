//! A helper that writes the status of any primary needs bounds.
//!
//! Two errors: neither the status nor the permission to write it is known of any `C`, and rustc reports both bounds of the method.
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
