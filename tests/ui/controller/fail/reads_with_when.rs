//! `reads` triggers nothing, so it has no predicate.
use kctl::prelude::*;

fn always(_change: &Change<Secret>) -> bool {
    true
}

#[controller(reads = Secret(when = always))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
