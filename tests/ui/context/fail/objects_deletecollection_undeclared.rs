//! `delete` does not allow `delete_collection`.
use kctl::prelude::*;

#[controller(reads = Pod(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Pod>().delete_collection(None, "app=web").await?;
    Ok(Action::await_change())
}

fn main() {}
