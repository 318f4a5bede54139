//! `DynamicObject` names no kind, so no role follows from it.
use kctl::prelude::*;

#[controller(reads = kctl::kube::core::DynamicObject)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
