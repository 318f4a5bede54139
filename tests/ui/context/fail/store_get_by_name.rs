//! A store is read by `Key`, not by a string.
use kctl::prelude::*;

#[controller(reads = Node)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    if let Some(node) = cx.store::<Node>().get("a") {
        println!("{}", node.name_any());
    }
    Ok(Action::await_change())
}

fn main() {}
