//! A struct around a `Context` needs a bound for what it writes.
use kctl::prelude::*;

struct Pods<C> {
    cx: Context<C>,
}

impl<C> Pods<C> {
    async fn clear(&self) -> Result<()> {
        let pods = self.cx.owned::<Pod>();
        for pod in pods.iter() {
            pods.delete(&pod).await?;
        }
        Ok(())
    }
}

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    Pods { cx }.clear().await?;
    Ok(Action::await_change())
}

fn main() {}
