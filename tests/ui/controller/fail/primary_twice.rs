//! Verbs of the primary are declared in one place: of two lists, the types would follow one and the role the other.
use kctl::prelude::*;

#[controller(primary(delete), primary(on = "edge", patch))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
