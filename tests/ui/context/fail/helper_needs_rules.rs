//! A caller without `rbac(…)` can't call a helper that needs `HasRules`.
//!
//! Three errors: rustc reports an unmet bound of an `async fn` at its argument, at its call and at its `.await`. A helper that is not
//! `async` has one.
use kctl::{kube::Api, prelude::*, reconcile::HasRules};

async fn raw<C: HasRules>(cx: &Context<C>) -> Result<usize> {
    let pods = Api::<Pod>::all(cx.client()).list(&Default::default()).await?;
    Ok(pods.items.len())
}

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    raw(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
