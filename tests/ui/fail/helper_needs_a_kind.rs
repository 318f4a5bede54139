//! A helper that needs a kind that is not declared.
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
