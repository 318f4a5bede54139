//! A loop borrows a store: `&store` or `store.iter()`.
use kctl::prelude::*;

#[controller(reads = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.store::<Pod>() {
        println!("{}", pod.name_any());
    }
    Ok(Action::await_change())
}

fn main() {}
