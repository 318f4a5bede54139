//! A kind of the primary's cluster is not declared on another cluster.
use kctl::prelude::*;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(reads = Pod, reads = Secret(on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.cluster(Edge).store::<Pod>().len();
    Ok(Action::await_change())
}

fn main() {}
