//! A reconcile is given its object and its context.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
