//! The first parameter is a Kubernetes kind.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<String>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
