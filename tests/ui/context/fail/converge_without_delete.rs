//! `converge` deletes what is no longer desired, so it needs the verb.
use kctl::prelude::*;

#[controller(owns = Pod(apply))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().converge([Pod::default()]).await?;
    Ok(Action::await_change())
}

fn main() {}
