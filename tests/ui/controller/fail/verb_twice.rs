//! A verb is given once.
use kctl::prelude::*;

#[controller(owns = Pod(create, create))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
