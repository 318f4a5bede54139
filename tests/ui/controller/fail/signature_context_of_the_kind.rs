//! `Context` takes the controller, not the kind.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<ConfigMap>) -> Result<Action> {
    println!("{}", cx.owned::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {}
