//! Objects are created by a controller that declares only to delete them.
use kctl::prelude::*;

#[controller(owns = Pod(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().create(Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
