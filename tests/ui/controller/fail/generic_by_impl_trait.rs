//! A controller is of one kind, which `impl Trait` does not name.
use kctl::prelude::*;

#[controller]
async fn configs(_object: Arc<impl ResourceExt>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
