//! Options of a delete are methods of the request, not a second argument.
use kctl::{k8s::api::batch::v1::Job, kube::api::DeleteParams, prelude::*};

#[controller(owns = Job)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let jobs = cx.owned::<Job>();
    for job in jobs.iter() {
        jobs.delete(&job, &DeleteParams::background()).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
