//! A view is read-only.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
}

#[controller(reads = Pod(as = Placed, patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let pods = cx.objects::<Placed>();
    for pod in cx.store::<Placed>().iter() {
        pods.patch(&pod, kctl::json!({ "spec": { "nodeName": pod.node } })).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
