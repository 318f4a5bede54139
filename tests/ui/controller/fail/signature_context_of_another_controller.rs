//! The `Context` has the function's own name.
use kctl::prelude::*;

#[controller]
async fn others(_config: Arc<ConfigMap>, _cx: Context<others>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<others>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
