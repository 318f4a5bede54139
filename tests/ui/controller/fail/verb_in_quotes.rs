//! Verbs are words, not strings.
use kctl::prelude::*;

#[controller(owns = Pod("create"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
