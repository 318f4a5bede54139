//! `map` takes a function of the relation's kind.
use kctl::prelude::*;

fn users_of(_service: &Service, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}

#[controller(watches = Secret(map = users_of))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
