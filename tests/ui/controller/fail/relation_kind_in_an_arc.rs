//! A relation names a kind, not an `Arc` of it.
use kctl::prelude::*;

#[controller(owns = Arc<Pod>)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
