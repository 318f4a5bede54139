//! A relation takes a Kubernetes kind.
use kctl::prelude::*;

#[controller(owns = String)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
