//! An option of a relation is given once.
use kctl::prelude::*;

#[controller(owns = Pod(selector = "a=b", selector = "c=d"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
