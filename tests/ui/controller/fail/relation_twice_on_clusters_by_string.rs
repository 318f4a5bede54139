//! A function can't distinguish clusters that are named by strings.
use kctl::prelude::*;

#[controller(reads = Pod(on = "edge"), reads = Pod(on = "north"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
