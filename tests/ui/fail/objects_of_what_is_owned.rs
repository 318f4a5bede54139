//! The status of what is owned needs a verb of its own.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Pod>().patch_status(&Pod::default(), "{}").await?;
    Ok(Action::await_change())
}

fn main() {}
