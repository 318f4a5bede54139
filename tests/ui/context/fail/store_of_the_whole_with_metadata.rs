//! A kind with `metadata` has no cache of whole objects.
use kctl::prelude::*;

#[controller(reads = Pod(metadata))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    println!("{}", cx.store::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {}
