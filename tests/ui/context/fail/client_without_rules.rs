//! `cx.client()` needs `rbac(…)`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _client = cx.client();
    Ok(Action::await_change())
}

fn main() {}
