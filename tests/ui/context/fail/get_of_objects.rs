//! A kind of `reads` is read from its store.
use kctl::prelude::*;

#[controller(reads = Pod(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _pod = cx.objects::<Pod>().get("web").await?;
    Ok(Action::await_change())
}

fn main() {}
