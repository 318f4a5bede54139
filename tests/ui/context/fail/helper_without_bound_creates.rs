//! A helper that creates needs a bound; rustc's suggestion compiles as well as the help.
use kctl::prelude::*;

async fn make<C>(cx: &Context<C>, pod: Pod) -> Result<()> {
    cx.owned::<Pod>().create(pod).await?;
    Ok(())
}

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    make(&cx, Pod::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
