//! `patch` and `create` do not allow `apply`.
use kctl::prelude::*;

#[controller(owns = Pod(create, patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().apply(Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
