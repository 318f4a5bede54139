//! Owned objects are in the cluster of the primary.
use kctl::prelude::*;

pub struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(reads = Pod(create, on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.cluster(Edge).owned::<Pod>().create(Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
