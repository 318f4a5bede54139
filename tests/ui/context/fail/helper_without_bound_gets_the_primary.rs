//! A helper that calls `cx.get()` needs a bound.
use kctl::prelude::*;

async fn newest<C: Controller<Primary = ConfigMap>>(cx: &Context<C>) -> Result<Arc<ConfigMap>> {
    Ok(cx.get().await?)
}

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    newest(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
