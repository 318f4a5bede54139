//! A store is read-only.
use kctl::prelude::*;

#[controller(reads = Pod(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let pods = cx.store::<Pod>();
    for pod in pods.iter() {
        pods.delete(&pod).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
