//! All mistakes are reported at once, one error for each.
use kctl::prelude::*;

#[controller(own = Pod, concurrency = 0, watches = Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
