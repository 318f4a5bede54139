//! `index` takes a function of the relation's kind.
use kctl::prelude::*;

fn by_node(_node: &Node) -> Vec<String> {
    Vec::new()
}

#[controller(owns = Pod(index = by_node))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
