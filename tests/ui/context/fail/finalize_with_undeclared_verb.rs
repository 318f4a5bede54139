//! Verbs that `finalize` uses are declared, too.
use kctl::prelude::*;

#[controller(of = ConfigMap, owns = Secret(create), finalizer = "example.com/secrets")]
struct Configs;

impl Reconcile for Configs {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Configs {
    async fn finalize(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<()> {
        let secrets = cx.owned::<Secret>();
        for secret in secrets.iter() {
            secrets.delete(&secret).await?;
        }
        Ok(())
    }
}

fn main() {}
