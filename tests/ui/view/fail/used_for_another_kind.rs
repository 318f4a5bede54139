//! A view can only replace the kind that it is a view of.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
}

#[controller(reads = Node(as = Placed))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
