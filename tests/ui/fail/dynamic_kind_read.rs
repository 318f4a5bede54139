//! A kind that is known at run time only.
use kctl::prelude::*;

#[controller(reads = kctl::kube::core::DynamicObject)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
