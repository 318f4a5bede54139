//! Only `reads` can be live.
use kctl::prelude::*;

#[controller(owns = Pod(live))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
