//! `live` has the scope `cluster`, or none.
use kctl::prelude::*;

#[controller(reads = Secret(live(everywhere)))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
