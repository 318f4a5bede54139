//! The struct of a custom kind needs `#[resource]`.
use kctl::prelude::*;

pub struct Site {
    pub replicas: i32,
}

#[controller]
async fn site(site: Arc<Site>, _cx: Context<site>) -> Result<Action> {
    println!("{}", site.replicas);
    Ok(Action::await_change())
}

fn main() {
    let _app = App::new("sites").controller::<site>();
}
