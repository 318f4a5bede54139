//! A rule is a `PolicyRule`, not kubebuilder's string.
use kctl::prelude::*;

#[controller(rbac("groups=apps,resources=deployments,verbs=get;list"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
