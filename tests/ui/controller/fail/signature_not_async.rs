//! A reconcile function is `async`.
use kctl::prelude::*;

#[controller(owns = Pod)]
fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
