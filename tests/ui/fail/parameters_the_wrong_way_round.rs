//! The context stands before the object.
use kctl::prelude::*;

#[controller]
async fn configs(cx: Context<configs>, config: Arc<ConfigMap>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
