//! `crate` takes a path, not a string.
use kctl::prelude::*;

#[controller(crate = "kctl")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
