//! What is only read is not patched.
use kctl::prelude::*;

#[controller(primary(read_only, patch))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
