//! A namespace is named in lower-case letters, digits and `-`.
use kctl::prelude::*;

#[controller(namespaces = ["default", "Team_A"])]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
