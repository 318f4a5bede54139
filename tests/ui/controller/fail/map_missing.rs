//! A watched kind needs a mapper to its primaries.
use kctl::prelude::*;

#[controller(watches = Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
