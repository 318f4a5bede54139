//! A field selector compares fields with values.
use kctl::prelude::*;

#[controller(owns = Pod(fields = "spec.nodeName"))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
