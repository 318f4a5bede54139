//! `converged` takes a function of two parameters.
use kctl::prelude::*;

fn of_the_object(_config: &ConfigMap) -> bool {
    true
}

#[controller(converged = of_the_object)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
