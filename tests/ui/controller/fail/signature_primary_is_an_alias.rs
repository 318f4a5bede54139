//! The kind of the first parameter is visible: an alias of its `Arc` hides it.
use kctl::prelude::*;

type Shared = Arc<ConfigMap>;

#[controller]
async fn configs(_config: Shared, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
