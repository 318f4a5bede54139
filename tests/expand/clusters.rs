//! A kind in the own cluster and in two others. A string names one of them.
use kctl::prelude::*;

#[controller(
    owns = Secret(on = Edge),
    watches = Pod(patch, map = configs_of, on = Edge),
    reads = Secret(live, on = regions::North),
    reads = Node(on = "far"),
    primary(on = Edge)
)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
