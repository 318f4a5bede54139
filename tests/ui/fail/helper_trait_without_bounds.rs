//! A trait of one's own for controllers, whose method needs more than it says.
use kctl::prelude::*;

trait Cleans: Controller {
    fn clean(cx: &Context<Self>) -> usize {
        cx.store::<Pod>().len()
    }
}

#[controller(reads = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    println!("{}", configs::clean(&cx));
    Ok(Action::await_change())
}

impl Cleans for configs {}

fn main() {}
