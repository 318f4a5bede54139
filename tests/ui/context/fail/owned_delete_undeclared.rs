//! `owned.delete` needs the verb `delete`.
use kctl::prelude::*;

#[controller(owns = Pod(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for pod in cx.owned::<Pod>().iter() {
        cx.owned::<Pod>().delete(&pod).await?;
    }
    Ok(Action::await_change())
}

fn main() {}
