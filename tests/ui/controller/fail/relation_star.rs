//! Kinds have no wildcard.
use kctl::prelude::*;

#[controller(owns = *)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
