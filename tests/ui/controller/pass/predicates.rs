//! Ready-made predicates of every relation that triggers.
use kctl::prelude::*;

/// Sees what changes in the specification only.
#[controller(
    owns = Pod(when = labels_changed),
    watches = ConfigMap(map = all, when = annotations_changed),
    primary(when = generation_changed)
)]
pub(crate) async fn deployments(_deployment: Arc<Deployment>, _cx: Context<deployments>) -> Result<Action> {
    Ok(Action::await_change())
}

fn all(_config: &ConfigMap, deployments: &Store<Deployment>) -> Vec<Key<Deployment>> {
    deployments.keys().into_iter().collect()
}

pub(crate) fn app() -> App {
    App::new("predicates").controller::<deployments>()
}
