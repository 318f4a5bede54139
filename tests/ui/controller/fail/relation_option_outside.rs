//! `when` belongs in the parentheses of a kind.
use kctl::prelude::*;

#[controller(owns = Pod, when = generation_changed)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
