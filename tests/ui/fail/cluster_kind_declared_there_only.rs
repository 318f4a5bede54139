//! What is declared there is not declared here.
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
