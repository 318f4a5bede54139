//! The primary is cached as a whole.
use kctl::prelude::*;

#[controller(primary(metadata))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
