//! `primary` takes its verbs in parentheses.
use kctl::prelude::*;

#[controller(primary = patch)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
