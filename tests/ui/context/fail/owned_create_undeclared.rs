//! `delete` does not allow `create`.
use kctl::prelude::*;

#[controller(owns = Pod(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().create(Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
