//! Every option of a relation, but for parts (`parts.rs`) and clusters (`clusters.rs`).
use kctl::prelude::*;

#[controller(
    owns = Pod(map = users_of, when = is_labelled, index = by_node, selector = "app", block_owner_deletion),
    watches = Secret(map = secrets_of, patch),
    reads = Node(optional, fields = "metadata.name=a"),
    reads = Service(live(cluster))
)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
