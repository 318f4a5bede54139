//! A rule is a `PolicyRule`, not controller-gen's options.
use kctl::prelude::*;

#[controller(rbac(groups = "apps", resources = "deployments", verbs = "get"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
