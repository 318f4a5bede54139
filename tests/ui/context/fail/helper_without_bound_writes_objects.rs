//! A helper that writes through `cx.objects` needs a bound.
use kctl::prelude::*;

async fn mark<C: Controller>(cx: &Context<C>, node: &Node) -> Result<()> {
    cx.objects::<Node>().patch(node, "{}").await?;
    Ok(())
}

#[controller(reads = Node(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    mark(&cx, &Node::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
