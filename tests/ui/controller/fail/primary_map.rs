//! A primary enqueues its own key, so it has no mapper.
use kctl::prelude::*;

fn all(_config: &ConfigMap, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    configs.keys()
}

#[controller(primary(map = all))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
