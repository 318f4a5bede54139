//! `owns` alone does not allow `scale`.
use kctl::prelude::*;

#[controller(owns = Deployment)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let deployments = cx.owned::<Deployment>();
    for deployment in deployments.iter() {
        deployments.scale(&deployment, 3).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
