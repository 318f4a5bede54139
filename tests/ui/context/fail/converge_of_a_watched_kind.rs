//! `converge` needs `owns`, not `watches`.
use kctl::prelude::*;

#[controller(watches = Pod(create, patch, delete, map = all))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.owned::<Pod>().converge(Vec::<Pod>::new()).await?;
    Ok(Action::await_change())
}

fn all(_pod: &Pod, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}

fn main() {}
