//! Owned objects are iterated.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.owned::<Pod>().list().await? {
        println!("{}", pod.name_any());
    }
    Ok(Action::await_change())
}

fn main() {}
