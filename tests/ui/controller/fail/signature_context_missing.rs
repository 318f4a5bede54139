//! A reconcile function has a second parameter, its `Context`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
