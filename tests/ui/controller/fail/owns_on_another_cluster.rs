//! Owner references do not cross clusters.
use kctl::prelude::*;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(owns = Pod(create, on = Edge))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
