//! The attribute on `impl Reconcile` is one error: the struct counts as a controller.
use kctl::prelude::*;

struct Configs;

#[controller(of = ConfigMap, owns = Pod)]
impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        for pod in cx.owned::<Pod>().iter() {
            cx.owned::<Pod>().delete(&pod).await?;
        }
        Ok(Action::await_change())
    }
}

fn main() {
    let _app = App::new("configs").controller_with(|_env| async { Ok(Configs) });
}
