//! The status of a built-in kind is somebody else's, unless it is declared.
use kctl::{k8s::api::apps::v1::DeploymentStatus, prelude::*};

#[controller]
async fn deployments(_deployment: Arc<Deployment>, cx: Context<deployments>) -> Result<Action> {
    cx.patch_status(DeploymentStatus::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
