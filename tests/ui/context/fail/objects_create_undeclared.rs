//! `reads` alone does not allow `create`.
use kctl::prelude::*;

#[controller(reads = Secret)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Secret>().create(&Secret::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
