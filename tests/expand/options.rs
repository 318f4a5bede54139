//! Options of a controller that are not relations.
use kctl::prelude::*;

#[controller(
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
