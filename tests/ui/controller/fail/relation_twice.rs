//! A kind has one relation.
use kctl::prelude::*;

#[controller(owns = Pod, reads = Pod)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
