//! What a controller needs beside its object is the state of the struct form.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>, _db: String) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
