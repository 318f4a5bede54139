//! A helper needs a kind that its caller does not declare.
use kctl::prelude::*;

fn count<C: Reads<Pod>>(cx: &Context<C>) -> usize {
    cx.store::<Pod>().len()
}

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _n_pods = count(&cx);
    Ok(Action::await_change())
}

fn main() {}
