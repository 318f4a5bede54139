//! `colour` is not an option.
use kctl::prelude::*;

#[controller(colour = "red")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
