//! `reads = Kind(live)` allows no write.
use kctl::prelude::*;

#[controller(reads = Secret(live))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Secret>().delete(&Secret::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
