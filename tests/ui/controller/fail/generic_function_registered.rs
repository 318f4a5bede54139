//! A generic function is reported once, also if it is registered with a kind.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs<K: kctl::object::Object>(object: Arc<K>, cx: Context<configs>) -> Result<Action> {
    println!("{} {}", object.name_any(), cx.owned::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {
    let _app = App::new("configs").controller::<configs>();
}
