//! The function's name still resolves while the attribute is being typed.
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
