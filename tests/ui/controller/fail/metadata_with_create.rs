//! `create` needs the whole object, not its metadata.
use kctl::prelude::*;

#[controller(owns = Pod(metadata, create))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
