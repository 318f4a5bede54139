//! A reconcile function has two parameters.
use kctl::prelude::*;

#[controller]
async fn configs() -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
