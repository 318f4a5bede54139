//! Of a kind that is read by its metadata nothing else is cached.
use kctl::prelude::*;

#[controller(reads = Pod(metadata))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    println!("{}", cx.store::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {}
