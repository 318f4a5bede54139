//! `concurrency` needs a value.
use kctl::prelude::*;

#[controller(concurrency)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
