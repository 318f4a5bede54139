//! A controller has at least one worker.
use kctl::prelude::*;

#[controller(concurrency = 0)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
