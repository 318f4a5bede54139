//! `apples` is not a unit of time.
use kctl::prelude::*;

#[controller(resync = "10 apples")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
