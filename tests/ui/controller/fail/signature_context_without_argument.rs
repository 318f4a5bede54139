//! `Context` needs its type argument.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
