//! A store is iterated; it has no `list`.
use kctl::prelude::*;

#[controller(reads = Node)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for node in cx.store::<Node>().list() {
        println!("{}", node.name_any());
    }
    Ok(Action::await_change())
}

fn main() {}
