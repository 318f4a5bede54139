//! `metadata` and `as` exclude each other.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
}

#[controller(reads = Pod(metadata, as = Placed))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
