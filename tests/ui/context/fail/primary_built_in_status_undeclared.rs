//! Another controller writes the status of a built-in kind, unless the declaration says otherwise.
use kctl::{k8s::api::apps::v1::DeploymentStatus, prelude::*};

#[controller]
async fn deployments(_deployment: Arc<Deployment>, cx: Context<deployments>) -> Result<Action> {
    cx.patch_status(DeploymentStatus::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
