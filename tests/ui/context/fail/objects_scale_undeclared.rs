//! `patch` does not allow `scale`: that is a subresource.
use kctl::prelude::*;

#[controller(reads = Deployment(patch))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Deployment>().scale(&Deployment::default(), 3).await?;
    Ok(Action::await_change())
}

fn main() {}
