//! A kind that is owned by its metadata is changed by its metadata.
use kctl::prelude::*;

#[controller(owns = Pod(metadata))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _pods = cx.owned::<Pod>();
    Ok(Action::await_change())
}

fn main() {}
