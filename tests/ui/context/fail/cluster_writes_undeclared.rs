//! Writes to another cluster are declared with `on`.
use kctl::prelude::*;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}
struct North;
impl Cluster for North {
    const NAME: &'static str = "north";
}

#[controller(reads = Pod(create, on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.cluster(North).objects::<Pod>().create(&Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
