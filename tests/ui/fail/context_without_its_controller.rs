//! The context is that of the controller.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
