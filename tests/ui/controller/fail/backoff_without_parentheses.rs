//! `backoff` takes its durations in parentheses.
use kctl::prelude::*;

#[controller(backoff = "5ms")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
