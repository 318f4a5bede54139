//! A helper that deletes needs a bound.
use kctl::prelude::*;

async fn clear<C>(cx: &Context<C>, pod: &Pod) -> Result<()> {
    cx.owned::<Pod>().delete(pod).await?;
    Ok(())
}

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    clear(&cx, &Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
