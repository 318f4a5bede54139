//! A relation takes a type, not a reference.
use kctl::prelude::*;

#[controller(reads = &Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
