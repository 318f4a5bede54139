//! `retries` is not negative.
use kctl::prelude::*;

#[controller(retries = -1)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
