//! `status` does not allow a patch of the object.
use kctl::prelude::*;

#[controller(reads = Node(status))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Node>().patch(&Node::default(), kctl::json!({})).await?;
    Ok(Action::await_change())
}

fn main() {}
