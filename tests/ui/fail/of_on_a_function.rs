//! A function names its kind once.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
