//! A kind has one relation, also if its path is written in two ways.
use kctl::prelude::*;

#[controller(owns = Pod, reads = kctl::k8s::api::core::v1::Pod)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
