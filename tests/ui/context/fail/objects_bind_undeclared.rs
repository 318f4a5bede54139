//! `patch` does not allow `bind`.
use kctl::prelude::*;

#[controller(reads = Pod(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Pod>().bind(&Pod::default(), "node-a").await?;
    Ok(Action::await_change())
}

fn main() {}
