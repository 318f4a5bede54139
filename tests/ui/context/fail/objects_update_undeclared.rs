//! `patch` does not allow `update`.
use kctl::prelude::*;

#[controller(reads = Secret(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Secret>().update(&Secret::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
