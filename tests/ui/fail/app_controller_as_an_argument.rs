//! A function controller is named by its type.
use kctl::prelude::*;

#[controller]
async fn site(_site: Arc<ConfigMap>, _cx: Context<site>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {
    let _app = App::new("sites").controller(site);
}
