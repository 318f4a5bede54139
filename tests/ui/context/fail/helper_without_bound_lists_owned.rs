//! A helper that calls `cx.owned` needs a bound.
use kctl::prelude::*;

fn count<C>(cx: &Context<C>) -> usize {
    cx.owned::<Pod>().len()
}

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _n_pods = count(&cx);
    Ok(Action::await_change())
}

fn main() {}
