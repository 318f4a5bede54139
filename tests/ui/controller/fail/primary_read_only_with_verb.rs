//! `read_only` and `patch` exclude each other.
use kctl::prelude::*;

#[controller(primary(read_only, patch))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
