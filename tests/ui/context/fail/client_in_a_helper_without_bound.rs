//! A helper that calls `cx.client()` needs the bound `HasRules`.
use kctl::{kube::Api, prelude::*};

async fn raw<C: Controller>(cx: &Context<C>) -> Result<usize> {
    let pods = Api::<Pod>::all(cx.client()).list(&Default::default()).await?;
    Ok(pods.items.len())
}

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    raw(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
