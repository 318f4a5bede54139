//! A live read is in one namespace or in all.
use kctl::prelude::*;

#[controller(reads = Secret(live(cluster), live))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
