//! A closure has the permissions of its controller.
use kctl::prelude::*;

#[controller(owns = Pod(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    let delete = async |pod: &Pod| pods.delete(pod).await;
    for pod in pods.iter() {
        delete(&pod).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
