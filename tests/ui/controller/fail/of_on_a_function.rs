//! A function names its kind in its first parameter.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
