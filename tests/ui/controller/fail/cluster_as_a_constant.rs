//! A cluster is named by a type, not by a constant.
use kctl::prelude::*;

const EDGE: &str = "edge";

#[controller(reads = Pod(on = EDGE))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
