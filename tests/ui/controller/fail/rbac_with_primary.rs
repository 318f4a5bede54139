//! Verbs on the primary are in `primary(…)`.
use kctl::prelude::*;

#[controller(rbac(primary(get)))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
