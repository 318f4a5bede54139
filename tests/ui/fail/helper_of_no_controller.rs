//! A helper that asks for the key of any type's object.
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
