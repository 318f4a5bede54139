//! `converge` compares whole objects, so an owned kind can't be a view.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
}

#[controller(owns = Pod(as = Placed))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
