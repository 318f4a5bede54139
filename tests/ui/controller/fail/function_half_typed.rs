//! Types still resolve while the function's body is being typed.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _pods = cx.owned::<Pod>();
    let _name = config.;
    Ok(Action::await_change())
}

fn main() {}
