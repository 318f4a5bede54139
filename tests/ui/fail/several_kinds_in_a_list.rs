//! A relation names one kind; there can be many relations.
use kctl::prelude::*;

#[controller(owns = [Pod, Service])]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
