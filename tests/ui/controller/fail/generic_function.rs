//! A controller is of one kind, so its function has no type parameters.
use kctl::prelude::*;

#[controller]
async fn configs<K>(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
