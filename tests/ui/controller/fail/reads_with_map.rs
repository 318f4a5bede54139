//! `reads` triggers nothing, so it has no mapper.
use kctl::prelude::*;

fn users_of(_secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}

#[controller(reads = Secret(map = users_of))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
