//! The second parameter is the `Context`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: String) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
