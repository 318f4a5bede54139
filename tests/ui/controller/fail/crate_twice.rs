//! The path of the crate is given once.
use kctl::prelude::*;

#[controller(crate = ::kctl, crate = ::kctl)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
