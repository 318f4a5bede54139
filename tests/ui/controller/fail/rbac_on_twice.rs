//! One `rbac` has one cluster: the rules would be missing on the other one.
use kctl::prelude::*;

#[controller(rbac(rule(), on = Edge, on = Other))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn rule() -> kctl::k8s::api::rbac::v1::PolicyRule {
    Default::default()
}

fn main() {}
