//! `rbac` takes its rules in parentheses.
use kctl::prelude::*;

#[controller(rbac = "*")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
