//! The verbs of a permission come from the declaration alone.
use kctl::prelude::*;

impl kctl::reconcile::bounds::MayDelete<configs, Pod> for <configs as kctl::reconcile::bounds::Declares<Pod>>::Verbs {}

#[controller(owns = Pod(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.owned::<Pod>().iter() {
        cx.owned::<Pod>().delete(&pod).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
