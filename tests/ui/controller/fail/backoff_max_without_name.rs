//! The longest wait has its name: it would be the first wait otherwise.
use kctl::prelude::*;

#[controller(backoff("5ms", "1000s"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
