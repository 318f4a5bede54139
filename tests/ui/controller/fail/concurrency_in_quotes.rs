//! `concurrency` takes a number, not a string.
use kctl::prelude::*;

#[controller(concurrency = "4")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
