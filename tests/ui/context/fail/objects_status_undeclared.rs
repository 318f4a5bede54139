//! `patch` does not allow `patch_status`: that is a subresource.
use kctl::prelude::*;

#[controller(reads = Node(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Node>().patch_status(&Node::default(), kctl::json!({})).await?;
    Ok(Action::await_change())
}

fn main() {}
