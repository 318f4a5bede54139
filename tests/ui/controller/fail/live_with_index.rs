//! A kind without a cache can't have an index.
use kctl::prelude::*;

fn by_type(_secret: &Secret) -> Vec<String> {
    Vec::new()
}

#[controller(reads = Secret(live, index = by_type))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
