//! `watches` alone does not allow `delete`.
use kctl::prelude::*;

fn users_of(_secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}

#[controller(watches = Secret(map = users_of))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for secret in cx.store::<Secret>().iter() {
        cx.objects::<Secret>().delete(&secret).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
