//! An option that does not exist.
use kctl::prelude::*;

#[controller(owns = Pod(colour = "red"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
