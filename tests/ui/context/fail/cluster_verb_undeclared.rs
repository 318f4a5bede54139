//! Verbs are declared for each cluster.
use kctl::prelude::*;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(reads = Pod(delete), reads = Pod(patch, on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.cluster(Edge).store::<Pod>().iter() {
        cx.cluster(Edge).objects::<Pod>().delete(&pod).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
