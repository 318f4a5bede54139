//! `converged` takes a function of the primary.
use kctl::prelude::*;

fn of_a_secret(_secret: &Secret, _cx: &Context<configs>) -> bool {
    true
}

#[controller(converged = of_a_secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
