//! While the attribute is being written, the function's name is still known.
use kctl::prelude::*;

#[controller(owns = )]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _key = cx.key();
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("configs").controller::<configs>()
}

fn main() {}
