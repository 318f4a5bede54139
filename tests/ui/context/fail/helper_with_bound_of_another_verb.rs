//! A bound for one verb does not allow another verb.
use kctl::prelude::*;

async fn renew<C: Creates<Pod>>(cx: &Context<C>) -> Result<()> {
    let pods = cx.owned::<Pod>();
    for pod in pods.iter() {
        pods.delete(&pod).await?;
    }
    pods.create(Pod::default()).await?;
    Ok(())
}

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    renew(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
