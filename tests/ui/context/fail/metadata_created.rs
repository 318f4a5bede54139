//! `PartialObjectMeta` can't be created.
use kctl::prelude::*;

#[controller(owns = Pod(metadata))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<PartialObjectMeta<Pod>>().create(PartialObjectMeta::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
