//! `cx.owned` needs `owns`, not `watches`.
use kctl::prelude::*;

fn users_of(_secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}

#[controller(watches = Secret(map = users_of))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _secrets = cx.owned::<Secret>();
    Ok(Action::await_change())
}

fn main() {}
