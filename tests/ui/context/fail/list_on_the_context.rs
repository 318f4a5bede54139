//! Objects are listed from a store, not by `cx`.
use kctl::prelude::*;

#[controller(reads = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.list::<Pod>().await? {
        println!("{}", pod.name_any());
    }
    Ok(Action::await_change())
}

fn main() {}
