//! A kind with `on = "edge"` is used without `cx.cluster`.
use kctl::prelude::*;

#[controller(reads = Pod(on = "edge"))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.cluster("edge");
    Ok(Action::await_change())
}

fn main() {}
