//! Every option.
use kctl::prelude::*;

#[controller(
    owns = Pod(map = users_of, when = is_labelled, index = by_node, selector = "app", fields = "spec.nodeName=a"),
    watches = Secret(map = secrets_of, patch),
    reads = Node(patch, optional),
    reads = Service(live(cluster)),
    primary(patch, status, when = is_changed),
    name = "configs",
    concurrency = 4,
    backoff("1s", max = "1m30s"),
    retries = 5,
    namespaces = ["default", "other"],
    resync = "10h",
    timeout = "30s",
    converged = is_as_wanted,
    rbac(extra_rule()),
    crate = ::kctl
)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
