//! Verbs are written in the parentheses of a kind, without a name.
use kctl::prelude::*;

#[controller(owns = Pod(verbs = [create, delete]))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
