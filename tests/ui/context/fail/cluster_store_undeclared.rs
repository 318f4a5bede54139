//! A cache of one cluster does not serve another cluster.
use kctl::prelude::*;

pub struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}
pub struct West;
impl Cluster for West {
    const NAME: &'static str = "west";
}

#[controller(reads = Node(on = Edge), reads = Node(live(cluster), on = West))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    println!("{} {}", cx.cluster(Edge).store::<Node>().len(), cx.cluster(West).store::<Node>().len());
    Ok(Action::await_change())
}

fn main() {}
