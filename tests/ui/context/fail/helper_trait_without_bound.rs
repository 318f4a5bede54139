//! A method of a trait for controllers needs a bound for what it reads.
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
