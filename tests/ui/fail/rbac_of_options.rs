//! A rule is written as a marker of controller-gen.
use kctl::prelude::*;

#[controller(rbac(groups = "apps", resources = "deployments", verbs = "get"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
