//! `owns` is misspelt.
use kctl::prelude::*;

#[controller(own = Pod)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
