//! Live reads are declared for each cluster.
use kctl::prelude::*;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(reads = Secret(live), reads = Pod(on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.cluster(Edge).live::<Secret>().get("web").await?;
    Ok(Action::await_change())
}

fn main() {}
