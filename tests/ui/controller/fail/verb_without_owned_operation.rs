//! `cx.owned` has no operation for `token`.
use kctl::prelude::*;

#[controller(owns = ServiceAccount(create, token), primary(patch))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
