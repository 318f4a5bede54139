//! The object is the first parameter, the context the second one.
use kctl::prelude::*;

#[controller]
async fn configs(cx: Context<configs>, config: Arc<ConfigMap>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
