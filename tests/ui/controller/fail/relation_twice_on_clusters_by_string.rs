//! Clusters named by strings can't be told apart in the function.
use kctl::prelude::*;

#[controller(reads = Pod(on = "edge"), reads = Pod(on = "north"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
