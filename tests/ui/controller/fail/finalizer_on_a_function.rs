//! A function can't implement `Finalize`.
use kctl::prelude::*;

#[controller(finalizer = "example.com/configs")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
