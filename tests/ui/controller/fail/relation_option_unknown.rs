//! `colour` is not an option of a relation.
use kctl::prelude::*;

#[controller(owns = Pod(colour = "red"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
