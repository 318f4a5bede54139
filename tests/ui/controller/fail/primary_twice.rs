//! Verbs of the primary are declared in one place. Of two lists, the types and the role would follow different ones.
use kctl::prelude::*;

#[controller(primary(delete), primary(on = "edge", patch))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
