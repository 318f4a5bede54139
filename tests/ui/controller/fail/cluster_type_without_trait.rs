//! The type of `on` implements `Cluster`.
use kctl::prelude::*;

struct Edge;

#[controller(reads = Pod(on = Edge))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
