//! `name` takes a string expression.
use kctl::prelude::*;

#[controller(name = configs)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
