//! A request is awaited before `?`.
use kctl::prelude::*;

#[controller(owns = Pod(delete))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    for pod in pods.iter() {
        pods.delete(&pod)?;
    }
    Ok(Action::await_change())
}

fn main() {}
