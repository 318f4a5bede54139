//! Another kind is not a view.
use kctl::prelude::*;

#[controller(reads = Pod(as = Secret))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
