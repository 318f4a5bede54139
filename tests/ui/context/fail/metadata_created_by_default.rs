//! An owned kind with `metadata` is applied, not created.
use kctl::prelude::*;

#[controller(owns = Pod(metadata))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<PartialObjectMeta<Pod>>().create(Default::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
