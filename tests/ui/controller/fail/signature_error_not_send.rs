//! The error type of the result is `Send` and `Sync`: it is logged by another task.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action, Box<dyn std::error::Error>> {
    Ok(Action::await_change())
}

fn main() {}
