//! A function has no place for the clean-up.
use kctl::prelude::*;

#[controller(finalizer = "example.com/configs")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
