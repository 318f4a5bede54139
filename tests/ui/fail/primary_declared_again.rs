//! The primary is declared by the function.
use kctl::prelude::*;

#[controller(reads = ConfigMap)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
