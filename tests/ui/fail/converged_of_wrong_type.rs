//! A check that is of another kind, one that asks nothing of the context, and one of no answer.
use kctl::prelude::*;

fn of_a_secret(_secret: &Secret, _cx: &Context<configs>) -> bool {
    true
}

fn of_the_object(_config: &ConfigMap) -> bool {
    true
}

async fn of_the_server(_config: &ConfigMap, _cx: &Context<services>) -> bool {
    true
}

#[controller(converged = of_a_secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(converged = of_the_object)]
async fn others(_config: Arc<ConfigMap>, _cx: Context<others>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(converged = of_the_server)]
async fn services(_config: Arc<ConfigMap>, _cx: Context<services>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
