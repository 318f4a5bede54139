//! A request that is not awaited is not sent.
use kctl::prelude::*;

#[deny(unused_must_use, reason = "a warning by default")]
#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().create(Pod::default());
    Ok(Action::await_change())
}

fn main() {}
