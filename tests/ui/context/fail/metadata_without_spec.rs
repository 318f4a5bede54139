//! `PartialObjectMeta` has no spec.
use kctl::prelude::*;

#[controller(reads = Pod(metadata))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let pods = cx.store::<PartialObjectMeta<Pod>>();
    println!("{}", pods.iter().filter(|pod| pod.spec.is_some()).count());
    Ok(Action::await_change())
}

fn main() {}
