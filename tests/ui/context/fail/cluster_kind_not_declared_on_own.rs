//! A kind of another cluster is not declared on the primary's cluster.
use kctl::prelude::*;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(reads = Pod(on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.store::<Pod>().len();
    Ok(Action::await_change())
}

fn main() {}
