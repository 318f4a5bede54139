//! An option is given once.
use kctl::prelude::*;

#[controller(concurrency = 2, concurrency = 4)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
