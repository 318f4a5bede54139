//! `delete` does not allow `evict`.
use kctl::prelude::*;

#[controller(reads = Pod(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Pod>().evict(&Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
