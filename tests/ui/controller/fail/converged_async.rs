//! `converged` reads caches and can't wait.
use kctl::prelude::*;

async fn of_the_server(_config: &ConfigMap, _cx: &Context<configs>) -> bool {
    true
}

#[controller(converged = of_the_server)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
