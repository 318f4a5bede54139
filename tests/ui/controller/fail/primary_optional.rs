//! A controller without its primary has nothing to do.
use kctl::prelude::*;

#[controller(primary(optional))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
