//! A verb that no operation on the primary uses would only make the role larger.
use kctl::prelude::*;

#[controller(primary(patch, update))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
