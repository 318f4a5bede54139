//! Objects are created by `cx.owned` or `cx.objects`, not by `cx`.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.create(Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
