//! A timeout of zero would cancel each reconcile.
use kctl::prelude::*;

#[controller(timeout = "0s")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
