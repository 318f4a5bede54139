//! What may be done with the primary is written as a rule.
use kctl::prelude::*;

#[controller(rbac(primary(get)))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
