//! Metadata is declared as `Kind(metadata)`.
use kctl::prelude::*;

#[controller(reads = PartialObjectMeta<Secret>)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _n_secrets = cx.store::<PartialObjectMeta<Secret>>().len();
    Ok(Action::await_change())
}

fn main() {}
