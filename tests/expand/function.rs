//! A function with one relation.
use kctl::prelude::*;

/// Does nothing.
#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
