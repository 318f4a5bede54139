//! A controller is of one kind, also where it is registered for one.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs<K: kctl::object::Object>(object: Arc<K>, cx: Context<configs>) -> Result<Action> {
    println!("{} {}", object.name_any(), cx.owned::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {
    let _app = App::new("configs").controller::<configs>();
}
