//! Nothing in the function would say which one is meant.
use kctl::prelude::*;

#[controller(reads = Pod(on = "edge"), reads = Pod(on = "north"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
