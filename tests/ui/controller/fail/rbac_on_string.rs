//! Rules on another cluster name it by a type.
use kctl::prelude::*;

#[controller(rbac(rule(), on = "edge"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn rule() -> kctl::k8s::api::rbac::v1::PolicyRule {
    Default::default()
}

fn main() {}
