//! Each kind has its own relation.
use kctl::prelude::*;

#[controller(owns = Pod(patch, status) + Service)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
