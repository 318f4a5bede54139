//! A controller of another module is public where it is registered.
use kctl::prelude::App;

mod controller {
    use kctl::prelude::*;

    #[controller]
    async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {
    let _app = App::new("configs").controller::<controller::configs>();
}
