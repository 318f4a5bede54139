//! Options are separated by commas.
use kctl::prelude::*;

#[controller(owns = Pod reads = Node)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
