//! A duration is a string with a unit.
use kctl::prelude::*;

#[controller(timeout = 30)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
