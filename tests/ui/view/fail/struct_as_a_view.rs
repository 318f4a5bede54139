//! A struct without the attribute is not a view.
use kctl::prelude::*;

struct Placed {
    node: Option<String>,
}

#[controller(reads = Pod(as = Placed))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
