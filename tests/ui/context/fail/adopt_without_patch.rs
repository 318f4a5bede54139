//! `adopt` sends a patch, so it needs the verb.
use kctl::prelude::*;

#[controller(owns = Pod(create, delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.adopt(&Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
