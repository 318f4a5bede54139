//! A declared status of a built-in kind is written as for a custom resource.
use kctl::{k8s::api::apps::v1::DeploymentStatus, prelude::*};

/// Writes a status.
#[controller(owns = Pod, primary(status))]
pub(crate) async fn deployments(_deployment: Arc<Deployment>, cx: Context<deployments>) -> Result<Action> {
    let replicas = i32::try_from(cx.owned::<Pod>().len())?;
    cx.patch_status(DeploymentStatus { replicas: Some(replicas), ..DeploymentStatus::default() }).await?;
    Ok(Action::await_change())
}

pub(crate) fn app() -> App {
    App::new("deployments").controller::<deployments>()
}
