//! The error type of the result implements `std::error::Error`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action, i32> {
    Ok(Action::await_change())
}

fn main() {}
