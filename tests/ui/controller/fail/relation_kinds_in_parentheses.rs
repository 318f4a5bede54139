//! `owns(Pod, Secret)` names kinds where verbs belong.
use kctl::prelude::*;

#[controller(owns(Pod, Secret))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
