//! The trait whose methods report a missing bound has no public name.
use kctl::prelude::*;

#[controller(reads = Node)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    kctl_runtime::reconcile::WithoutBounds::objects::<Node>(&cx).delete(&Node::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
