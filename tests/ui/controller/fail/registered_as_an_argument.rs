//! A function controller is registered by its type: `controller::<site>()`.
use kctl::prelude::*;

#[controller]
async fn site(_site: Arc<ConfigMap>, _cx: Context<site>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {
    let _app = App::new("sites").controller(site);
}
