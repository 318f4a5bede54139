//! `selector` takes a string.
use kctl::prelude::*;

#[controller(owns = Pod(selector = 7))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
