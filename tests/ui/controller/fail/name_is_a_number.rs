//! `name` takes a string, not a number.
use kctl::prelude::*;

#[controller(name = 7)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
