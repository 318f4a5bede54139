//! What is only read is not created.
use kctl::prelude::*;

#[controller(reads = Secret)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Secret>().create(&Secret::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
