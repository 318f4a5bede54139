//! State of a controller is in the struct form, not in a third parameter.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>, _db: String) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
