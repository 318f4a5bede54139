//! `cx.owned` needs `owns = Kind`.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _services = cx.owned::<Service>();
    Ok(Action::await_change())
}

fn main() {}
