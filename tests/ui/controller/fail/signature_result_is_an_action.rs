//! A reconcile function returns a `Result`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Action {
    Action::await_change()
}

fn main() {}
