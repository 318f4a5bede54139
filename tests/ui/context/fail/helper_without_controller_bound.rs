//! A helper that calls `cx.key()` needs the bound `Controller`.
use kctl::prelude::*;

fn name<C>(cx: &Context<C>) -> String {
    cx.key().to_string()
}

#[controller]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _name = name(&cx);
    Ok(Action::await_change())
}

fn main() {}
