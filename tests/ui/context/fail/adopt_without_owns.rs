//! `adopt` needs `owns`, not `reads`.
use kctl::prelude::*;

#[controller(reads = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.store::<Pod>().iter() {
        cx.adopt(&*pod).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
