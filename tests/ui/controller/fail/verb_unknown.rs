//! `frobnicate` is not a verb.
use kctl::prelude::*;

#[controller(owns = Pod(frobnicate))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
