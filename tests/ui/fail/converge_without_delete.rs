//! What converges also deletes.
use kctl::prelude::*;

#[controller(owns = Pod(apply))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().converge([Pod::default()]).await?;
    Ok(Action::await_change())
}

fn main() {}
