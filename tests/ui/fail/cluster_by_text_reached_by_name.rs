//! A text is no type: what it names is reached without it.
use kctl::prelude::*;

#[controller(reads = Pod(on = "edge"))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.cluster("edge");
    Ok(Action::await_change())
}

fn main() {}
