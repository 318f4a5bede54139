//! A label selector is written as for `kubectl get -l`.
use kctl::prelude::*;

#[controller(owns = Pod(selector = "app in web)"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
