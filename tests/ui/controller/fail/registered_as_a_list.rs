//! Controllers are registered one at a time.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller]
async fn pods(_pod: Arc<Pod>, _cx: Context<pods>) -> Result<Action> {
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("both").controller::<(configs, pods)>()
}

fn main() {}
