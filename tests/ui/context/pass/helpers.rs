//! Helper functions whose bounds name what they need.
use kctl::prelude::*;

async fn replace_all<C: Owns<Pod>>(cx: &Context<C>) -> Result<()> {
    let pods = cx.owned::<Pod>();
    for pod in &pods {
        pods.delete(pod).await?;
    }
    pods.create(Pod::default()).await?;
    pods.apply(Pod::default()).await?;
    Ok(())
}

async fn add<C: Creates<Pod>>(cx: &Context<C>) -> Result<Arc<Pod>> {
    Ok(cx.owned::<Pod>().create(Pod::default()).await?)
}

async fn label<C: Patches<Pod>>(cx: &Context<C>, pod: &Pod) -> Result<()> {
    cx.owned::<Pod>().patch(pod, kctl::json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    Ok(())
}

async fn remove<C: Deletes<Pod>>(cx: &Context<C>, pod: &Pod) -> Result<()> {
    cx.owned::<Pod>().delete(pod).await?;
    Ok(())
}

fn count<C: Reads<Secret>>(cx: &Context<C>) -> usize {
    cx.store::<Secret>().len()
}

#[controller(owns = Pod, reads = Secret)]
pub(crate) async fn everything(_config: Arc<ConfigMap>, cx: Context<everything>) -> Result<Action> {
    replace_all(&cx).await?;
    let pod = add(&cx).await?;
    label(&cx, &pod).await?;
    if count(&cx) == 0 {
        remove(&cx, &pod).await?;
    }
    Ok(Action::await_change())
}

#[controller(owns = Pod(create), name = "adder")]
pub(crate) async fn adder(_config: Arc<ConfigMap>, cx: Context<adder>) -> Result<Action> {
    add(&cx).await?;
    Ok(Action::await_change())
}

pub(crate) fn app() -> App {
    App::new("helpers").controller::<everything>().controller::<adder>()
}
